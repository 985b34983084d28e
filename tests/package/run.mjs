#!/usr/bin/env node
// The Debian package as a user meets it: installed by apt in a Debian 12 system that has nothing else, run there,
// upgraded, removed.
//
//   node tests/package/run.mjs PACKAGE
//
//   TASKBELL_SCREENSHOTS   a folder that keeps the picture of the window
//
// Root only (chroot and mounts, in name spaces of their own); says so and counts one skipped otherwise. The screen is
// this machine's Xvfb: all that the programs need besides must come with the package.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { check, count, waitUntil } from "../page/checks.mjs";
import { looks } from "./looks.mjs";
import { System, run } from "./system.mjs";

const TASK = "steps=6 interval=0.2 cut=3 chunks=2";
const file = resolve(process.argv[2] ?? "");
if (!existsSync(file)) {
  console.error("package: name the package that `make package` made");
  process.exit(2);
}
if (process.getuid() !== 0) {
  console.log("package: installing in a system of its own needs root");
  console.log("0 passed, 0 failed, 1 skipped");
  process.exit(0);
}

const scratch = mkdtempSync(join(tmpdir(), "taskbell-package-"));
const ends = [];
const cleanUp = () => {
  for (const end of ends.toReversed()) end();
  rmSync(scratch, { recursive: true, force: true });
};
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => (cleanUp(), process.exit(1)));

/** The same package under an older number: what an upgrade comes from. */
function older() {
  const tree = join(scratch, "older");
  run("dpkg-deb", ["--raw-extract", file, tree]);
  const control = join(tree, "DEBIAN/control");
  writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*$/m, "Version: 0.0.1-1"));
  const made = join(scratch, "taskbell-older.deb");
  run("dpkg-deb", ["--root-owner-group", "-Zgzip", "-z1", "--build", tree, made]);
  return made;
}

/** A screen of this machine, without whose desktop. */
async function screen() {
  const child = spawn(
    "Xvfb",
    ["-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset", "-ac"],
    {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    },
  );
  ends.push(() => child.kill());
  let display = "";
  child.stdio[3].on("data", (text) => (display += text));
  await waitUntil("screen", () => display.endsWith("\n"));
  return `:${display.trim()}`;
}

/** Starts what runs within until it is stopped by name: `{ log, stop }`. */
function start(system, script, options) {
  const child = system.start(script, options);
  ends.push(child.stop);
  return child;
}

const gone = (child) => child.exitCode !== null || child.signalCode !== null;

/** The engine within, a demo task that is cut and found again, and a clean stop; what it printed of the task. */
function demo(system, more = "") {
  const script = `
    set -e
    taskbell serve --demo --json --credential-store memory --gateway 127.0.0.1:0 --inbox 127.0.0.1:0 >ready 2>engine.log &
    engine=$!
    for i in $(seq 300); do [ -s ready ] && break; kill -0 $engine || { cat engine.log >&2; exit 1; }; sleep 0.1; done
    cat ready
    task=$(taskbell send demo '${TASK}' --json --wait | tail -n 1)
    echo "$task"
    ${more}
    kill -TERM $engine
    wait $engine`;
  return system.asPerson(script, { timeout: 120_000 });
}

async function installs(system) {
  system.put(older(), "taskbell-older.deb");
  system.put(file, "taskbell.deb");
  system.refresh();
  system.install("/taskbell-older.deb", "--no-install-recommends");
  const manifest = readFileSync(join(import.meta.dirname, "../../Cargo.toml"), "utf8");
  const version = manifest.match(/^version = "(.+)"$/m)[1];
  check("apt installs it in a system that has nothing else", true);
  const has = system.asPerson("command -v gcc cargo node || echo none");
  check("which has no compiler, no Rust and no Node", has === "none", has);
  check("taskbell says its version", system.asPerson("taskbell --version") === `taskbell ${version}`);
  check(
    "taskbell-desktop says it without a screen",
    system.asPerson("taskbell-desktop --version") === `taskbell-desktop ${version}`,
  );
  const missing = system.asRoot(
    "ldd /usr/bin/taskbell /usr/bin/taskbell-desktop | grep -c 'not found' || true",
  );
  check("every library that the programs are linked with came along", missing === "0", missing);
}

function runs(system) {
  const lines = demo(system).split("\n");
  check("the engine gets ready", JSON.parse(lines[0]).ready === true, lines[0]);
  check("a demo task ends, over a cut", JSON.parse(lines.at(-1)).state === "completed", lines.at(-1));
}

function upgrades(system) {
  const before = JSON.parse(demo(system, "taskbell tasks --json").split("\n").at(-1)).items.map(
    (item) => item.task,
  );
  system.install("/taskbell.deb", "--no-install-recommends");
  const now = system.asRoot("dpkg-query -W -f '${Version}' taskbell");
  check("apt upgrades an older one", now !== "0.0.1-1" && /^\d/.test(now), now);
  const after = JSON.parse(demo(system, "taskbell tasks --json").split("\n").at(-1)).items.map(
    (item) => item.task,
  );
  check(
    "and every task is still there",
    before.length === 2 && before.every((task) => after.includes(task)),
    { before, after },
  );
}

async function removes(system) {
  const files = system.asRoot("dpkg -L taskbell").split("\n");
  const ours = files.filter((path) => /taskbell/.test(path));
  check("the package says what it brought", ours.length > 60, ours.length);
  const kept = "ls /home/person/.local/share/taskbell/taskbell.db";
  system.asRoot("apt-get -q -y remove taskbell");
  const left = () => system.asRoot(`for f in ${ours.join(" ")}; do [ ! -e $f ] || echo $f; done`);
  check("removing it takes every file along", left() === "", left());
  system.asRoot("apt-get -q -y purge taskbell || true");
  // What is in /run goes with the session.
  const everywhere =
    "find / -xdev \\( -path /proc -o -path /dev -o -path /home -o -path /tmp -o -path /run \\) -prune -o -iname '*taskbell*' -print";
  const traces = system
    .asRoot(everywhere)
    .split("\n")
    .filter((path) => path && !/^\/taskbell(-older)?\.deb$/.test(path));
  check("after a purge nothing in the system has its name", traces.length === 0, traces);
  const state = system.asRoot("dpkg-query -W taskbell 2>&1 || true");
  check("dpkg does not know it any more", /no packages found/.test(state), state);
  check("what the user did with it stays", system.asRoot(kept).endsWith("taskbell.db"));
}

let system;
try {
  system = new System();
  ends.push(() => system.remove());
  await installs(system);
  runs(system);
  upgrades(system);
  await looks({
    system,
    start: (script, options) => start(system, script, options),
    gone,
    display: await screen(),
    file,
    scratch,
  });
  await removes(system);
} catch (error) {
  check(`done to its end`, false, error.message);
}
cleanUp();
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
