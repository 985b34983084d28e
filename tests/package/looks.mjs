// What the installed package looks like from a desktop: the window with and without one, manual pages, completions,
// the menu entry, notices that nobody shows.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { check, waitUntil } from "../page/checks.mjs";
import { run } from "./system.mjs";

const WINDOW_MS = 60_000;
const desktopCommand = (folder) =>
  `exec taskbell-desktop --demo --credential-store memory --data-dir ${folder} --gateway 127.0.0.1:0 --inbox 127.0.0.1:0`;

/** The window on the screen: its id, once it is painted. */
async function windowOn(display, program, gone, scratch, name) {
  const env = { ...process.env, DISPLAY: display };
  const id = await waitUntil(
    "window named Taskbell",
    () => {
      if (gone(program)) throw new Error(`it ended: ${program.log}`);
      try {
        return run("xdotool", ["search", "--onlyvisible", "--name", "^Taskbell$"], { env });
      } catch {
        return undefined;
      }
    },
    WINDOW_MS,
  );
  const picture = join(process.env.TASKBELL_SCREENSHOTS ?? scratch, `${name}.png`);
  const colours = await waitUntil(
    "painted window",
    () => {
      run("import", ["-silent", "-window", id, picture], { env });
      const seen = Number(run("identify", ["-format", "%k", picture]));
      return seen > 64 && seen;
    },
    WINDOW_MS,
  );
  const names = run("xprop", ["-id", id, "WM_CLASS"], { env });
  return { id, colours, names };
}

async function ends(program, gone) {
  program.stop();
  await waitUntil("end of the program", () => gone(program));
}

/** Nothing but what the package needs: no session bus, no tray library, no notification service. */
async function bare({ system, start, gone, display, scratch }) {
  const program = start(desktopCommand("/home/person/bare"), { display });
  const { names } = await windowOn(display, program, gone, scratch, "bare");
  check("the window opens without a session bus and without a tray library", true);
  const entry = system.asRoot("cat /usr/share/applications/taskbell-desktop.desktop");
  const named = entry.match(/^StartupWMClass=(.*)$/m)[1];
  check("its window is the one that the menu entry names", names.toLowerCase().includes(`"${named}"`), names);
  await ends(program, gone);
}

function pages(system) {
  const where = system.asRoot("man -w taskbell taskbell-agent-add taskbell-desktop").split("\n");
  check(
    "man finds the pages",
    where.length === 3 && where.every((path) => path.startsWith("/usr/share/man/man1/")),
    where,
  );
  const complaints = system.asRoot(
    "for page in /usr/share/man/man1/taskbell*; do man --warnings -E UTF-8 -l $page 2>&1 >/dev/null; lexgrog $page >/dev/null || echo no name: $page; done",
  );
  check("groff and the index read each without a complaint", complaints === "", complaints);
  const options = system.asPerson("taskbell-desktop --help").match(/--[a-z-]+/g);
  const page = system.asRoot("man -E ascii taskbell-desktop | col -b");
  const untold = options.filter((option) => !page.includes(option));
  check(
    "the window's page has every option that its help has",
    options.length > 5 && untold.length === 0,
    untold,
  );
}

function completions(system) {
  const bash = system.asPerson(
    "source /usr/share/bash-completion/completions/taskbell; COMP_WORDS=(taskbell ser); COMP_CWORD=1; _taskbell taskbell ser taskbell; echo ${COMPREPLY[@]}",
  );
  check("bash completes a command", bash === "serve", bash);
  const zsh = system.asPerson(
    "zsh -fc 'autoload -U compinit; compinit -u -d /tmp/zcompdump; echo $_comps[taskbell]; autoload +X _taskbell && echo loads'",
  );
  check("zsh knows its completions", zsh === "_taskbell\nloads", zsh);
  const fish = system.asPerson("fish -c 'complete -C \"taskbell ser\"'");
  check("fish completes a command", /^serve\b/.test(fish), fish);
}

function registered(system, file) {
  const complaints = system.asRoot("desktop-file-validate /usr/share/applications/taskbell-desktop.desktop");
  check("the menu entry is a valid one", complaints === "", complaints);
  const described = run("appstreamcli", [
    "validate",
    "--no-net",
    join(system.root, "usr/share/metainfo/dev.taskbell.desktop.metainfo.xml"),
  ]);
  check(
    "the description for software centres is a valid one",
    /Validation was successful/i.test(described),
    described,
  );
  const handler = system.asPerson("gio mime x-scheme-handler/taskbell | head -n 1");
  check("taskbell: addresses are the window's", handler.endsWith("taskbell-desktop.desktop"), handler);
  const icons = readdirSync(join(system.root, "usr/share/icons/hicolor"));
  check(
    "the icon comes in every usual size",
    ["16x16", "48x48", "256x256", "scalable"].every((size) => icons.includes(size)),
    icons,
  );
  const lintian = run("lintian", ["--fail-on", "none", "--tag-display-limit", "0", file], {
    timeout: 900_000,
  });
  const errors = lintian.split("\n").filter((line) => line.startsWith("E:"));
  check("lintian finds no error", errors.length === 0, errors);
}

/** With what the package recommends, on a session bus of the user's own. */
async function onABus({ system, start, gone, display, scratch }) {
  const program = start(
    `dbus-run-session -- bash -c '${desktopCommand("/home/person/whole").replace("exec ", "")}'`,
    { display },
  );
  const { colours } = await windowOn(display, program, gone, scratch, "window");
  check("the window opens and is painted", colours > 64, colours);
  await ends(program, gone);
}

/** Faults: nobody shows notices; who shows them hangs. The program says so, and goes on. */
async function silence({ system, display }) {
  const script = (service) => `
    set -e
    ${service}
    taskbell-desktop --demo --credential-store memory --data-dir ~/silent --gateway 127.0.0.1:0 --inbox 127.0.0.1:0 2>silent.log &
    window=$!
    export TASKBELL_DATA_DIR=~/silent
    for i in $(seq 600); do [ -s ~/silent/runtime.json ] && taskbell tasks --json >/dev/null 2>&1 && break; sleep 0.1; done
    began=$(date +%s%3N)
    taskbell notice test --json || true
    echo $(( $(date +%s%3N) - began ))
    taskbell send demo 'steps=3 interval=0.1' --wait --json | tail -n 1
    kill -TERM $window
    wait $window || true
    rm -rf ~/silent`;
  const play = (service) => {
    const whole = `dbus-run-session -- bash <<'INNER'\n${script(service)}\nINNER`;
    const lines = system.asPerson(whole, { display, timeout: 180_000 }).split("\n");
    const [notice, took, task] = lines.slice(-3);
    return { notice: JSON.parse(notice), took: Number(took), task: JSON.parse(task) };
  };
  const failed = (seen) =>
    JSON.stringify(seen.notice).includes("failed") && !JSON.stringify(seen.notice).includes('"shown"');
  const absent = play("true");
  check("without a notification service a notice is said to have failed", failed(absent), absent);
  check("and tasks go on to their end", absent.task.state === "completed", absent.task);
  // The bus would start it for whoever calls, so it comes only now.
  system.install("dunst", "--no-install-recommends");
  // The real service, stopped in mid-life: it owns its name and answers nothing.
  const hung = play(
    "dunst >/dev/null 2>&1 & dunst=$!; for i in $(seq 100); do gdbus call --session --dest org.freedesktop.Notifications --object-path /org/freedesktop/Notifications --method org.freedesktop.Notifications.GetServerInformation >/dev/null 2>&1 && break; sleep 0.1; done; kill -STOP $dunst",
  );
  check(
    "one that hangs is given up on within seconds, and said to have failed",
    failed(hung) && hung.took < 6000,
    hung,
  );
  check("and tasks go on to their end all the same", hung.task.state === "completed", hung.task);
}

export async function looks(world) {
  await bare(world);
  world.system.install(
    "dbus man-db groff bsdextrautils bash-completion zsh fish desktop-file-utils libglib2.0-bin libayatana-appindicator3-1",
    "--no-install-recommends",
  );
  pages(world.system);
  completions(world.system);
  registered(world.system, world.file);
  await onABus(world);
  await silence(world);
}
