#!/usr/bin/env node
// The desktop app as a program: whose engine it shows, that there is one window, and how it goes away.
//
//   node tests/window/app.mjs DESKTOP COMMANDLINE
//
//   TASKBELL_SCREENSHOTS   a folder that keeps the pictures
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import {
  check,
  desktop,
  openWindow,
  picture,
  program,
  run,
  scratch,
  signal,
  start,
  STEP_MS,
  test,
  waitUntil,
} from "./support.mjs";

const LIMIT_MS = 240_000;
/** The engine may take 3 s to stop cleanly; the rest is the machine's. */
const STOPS_MS = 4_000;
const taskbell = resolve(process.argv[3] ?? "target/debug/taskbell");

const args = (folder, ...more) => [
  ...["--data-dir", folder, "--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0", "--credential-store", "memory"],
  ...more,
];

function folder(name) {
  const path = join(scratch, name);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

/** The tray of this desktop, from now on. */
async function trayHost(env) {
  const host = start("/usr/bin/python3", [join(import.meta.dirname, "tray_host.py")], {
    env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const waiting = [];
  createInterface({ input: host.stdout }).on("line", (line) => waiting.shift()?.(JSON.parse(line)));
  const next = () => new Promise((done) => waiting.push(done));
  const within = (promise) =>
    Promise.race([
      promise,
      new Promise((_, fail) => setTimeout(() => fail(new Error("the tray does not answer")), STEP_MS).unref()),
    ]);
  const ask = (line) => {
    const told = next();
    host.stdin.write(`${line}\n`);
    return within(told).then((value) => {
      if (value?.error) throw new Error(`tray: ${value.error}`);
      return value;
    });
  };
  const ready = next();
  await within(ready);
  return {
    menu: () => ask("menu"),
    press: (label) => ask(`press ${label}`),
    async end() {
      signal(host, "SIGTERM");
      await ended(host, STEP_MS);
    },
  };
}

/** Starts the app without a driver, as a user does. */
const launch = (env, folder, ...more) =>
  start(program, args(folder, ...more), { env, stdio: ["ignore", "pipe", "pipe"] });

/** The exit code of a program that ends, and after how long. */
async function ended(child, limit) {
  const began = performance.now();
  await waitUntil("end of the program", () => child.exitCode !== null || child.signalCode !== null, limit);
  return { code: child.exitCode, ms: Math.round(performance.now() - began) };
}

function visible(env) {
  try {
    return run("xdotool", ["search", "--onlyvisible", "--name", "^Taskbell$"], env).split("\n")[0];
  } catch {
    return undefined; // Found none.
  }
}

const shown = (env) => waitUntil("window", () => visible(env));
const gone = (env) => waitUntil("window that goes away", () => visible(env) === undefined);

/** As the window manager's button does. */
const pressClose = (env, id) => run("/usr/bin/python3", [join(import.meta.dirname, "close_window.py"), id], env);

const asked = async (window, method, path, body = null) => {
  const { status, body: value } = await window.invoke("api_request", { method, path: `/api/v1${path}`, body });
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(value)}`);
  return value;
};

/** Listens on the program's one channel in place of the page; what it heard so far is `heard()`. */
async function listen(window, after) {
  await window.execute(`
    const heard = (window.heardByTest = []);
    const id = window.__TAURI_INTERNALS__.transformCallback((part) => heard.push(part.message));
    window.channelOfTest = "__CHANNEL__:" + id;`);
  const channel = await window.execute("return window.channelOfTest");
  await window.invoke("changes", { after, channel });
  return () => window.execute("return window.heardByTest.filter(Boolean)");
}

const changesIn = (messages) => messages.flatMap((message) => message.changes ?? []);

async function secondStartRaises(env, folder, sentence) {
  const second = launch(env, folder);
  const { code } = await ended(second, STEP_MS);
  check(sentence, code === 0 && visible(env) !== undefined, { code, log: second.log });
}

/** The engine in the window's process, with a tray: followed, hidden, found again, answered. */
async function withTray(given) {
  const tray = await trayHost(given);
  const opened = join(scratch, "opened");
  const env = { ...given, PATH: `${browser(opened)}:${given.PATH}` };
  const data = folder("own");
  const window = await openWindow(env, args(data, "--demo"));
  await shown(env);
  const agents = await asked(window, "GET", "/agents");
  check("the window's own engine has the built-in agent", agents.items[0]?.name === "demo", agents);
  const heard = await listen(window, 0);
  const task = await asked(window, "POST", "/agents/demo/send", { text: "steps=2 interval=0.1 ask=1" });
  check("a task is started through the command", task.task.startsWith("demo/"), task);
  await waitUntil("question", async () => (await asked(window, "GET", `/tasks/${task.task}`)).needsYou);
  await waitUntil("question in the feed", async () =>
    changesIn(await heard()).some((change) => change.task === task.task && JSON.stringify(change).includes("input-required")),
  );
  check("the question came through the channel", true);
  const messages = await heard();
  check("the feed says that it stands", messages.some((one) => one.link === "live"), messages[0]);

  const menu = await waitUntil("question in the tray", async () => {
    const now = await tray.menu();
    return now.some((label) => label.startsWith("1 wait")) ? now : undefined;
  });
  check("the tray counts, and says how fresh that is", /^1 wait · 0 run · confirmed \d+ s ago$/.test(menu[0]), menu);
  check("the tray names the waiting task", menu[1]?.startsWith("demo: "), menu);
  check(
    "quitting says what stops",
    menu.includes("Quit… > 1 live watch stops until Taskbell runs again"),
    menu,
  );
  check("the tray offers the rest", ["Reconcile all now", "Open", "Quit… > Quit now"].every((one) => menu.includes(one)), menu);

  await secondStartRaises(env, data, "a second start leaves the one window there and ends with 0");
  pressClose(env, await shown(env));
  await gone(env);
  const listed = run(taskbell, ["tasks", "--json", "--data-dir", data], env);
  check("closed, the window is hidden and the engine answers the command line", listed.includes(task.task), listed);
  await secondStartRaises(env, data, "a second start brings the hidden window back");

  pressClose(env, await shown(env));
  await gone(env);
  await tray.press("demo: ");
  await shown(env);
  await waitUntil("task chosen in the tray", async () =>
    (await heard()).some((one) => one.type === "open-task" && one.task === task.task),
  );
  check("a row of the tray brings the window back at its task", true);
  const before = (await asked(window, "GET", `/tasks/${task.task}`)).lastConfirmed.at;
  await tray.press("Reconcile all now");
  await waitUntil("a newer confirmation", async () =>
    (await asked(window, "GET", `/tasks/${task.task}`)).lastConfirmed.at > before,
  );
  check("the tray reconciles", true);
  await asked(window, "POST", `/tasks/${task.task}/reply`, { text: "go on" });
  await waitUntil("end of the task", async () => (await asked(window, "GET", `/tasks/${task.task}`)).state === "completed");
  check("the answered task ends", true);
  await waitUntil("empty tray", async () => (await tray.menu())[0].startsWith("0 wait · 0 run"));
  picture(env, await shown(env), "app");
  await refusals(window);
  check("what is not opened reaches no browser", !existsSync(opened));
  await window.invoke("open_external", { url: "https://example.com/a?b=c&d=e" });
  const address = await waitUntil("browser", () => existsSync(opened) && readFileSync(opened, "utf8"));
  check("a web address is opened outside, whole", address === "https://example.com/a?b=c&d=e\n", address);
  await window.close();
  await gone(env);

  const again = launch(env, data, "--demo");
  await shown(env);
  await waitUntil("restarted tray", async () => (await tray.menu())[0].startsWith("0 wait"));
  await tray.press("Quit… > Quit now");
  const { code, ms } = await ended(again, STOPS_MS);
  check(
    "Quit in the tray stops the engine cleanly within 3 s",
    code === 0 && !existsSync(join(data, "runtime.json")),
    { code, ms, log: again.log },
  );
  await tray.end();
}

/** A notice of the real desktop: it is shown once, and a click on it brings the window back at its task. */
async function notices(env) {
  const tray = await trayHost(env);
  // The session bus starts dunst when it is first called.
  const count = (which) => Number(run("dunstctl", ["count", which], env));
  run("dunstctl", ["close-all"], env);
  await waitUntil("empty screen", () => count("displayed") === 0);
  const before = count("history");
  const data = folder("notices");
  const app = launch(env, data, "--demo");
  const id = await shown(env);
  await waitUntil("engine", () => existsSync(join(data, "runtime.json")));
  pressClose(env, id);
  await gone(env);
  const text = "steps=2 interval=0.1 ask=1";
  const { task } = JSON.parse(run(taskbell, ["send", "demo", text, "--json", "--data-dir", data], env));
  await waitUntil("notice", () => count("displayed") === 1);
  const after = [count("displayed"), count("waiting"), count("history") - before];
  check("a question is one notice, also while the window is hidden", after.join() === "1,0,0" && !visible(env), after);
  run("dunstctl", ["action"], env); // The default one, as a click is.
  await shown(env);
  check("a click on the notice brings the window back", true);
  await waitUntil("painted window", () => windowShows(env, "notice"));
  run("dunstctl", ["close-all"], env);
  run(taskbell, ["reply", task, "go on", "--data-dir", data], env);
  process.kill(app.pid, "SIGTERM");
  check("and it stops cleanly", (await ended(app, STOPS_MS)).code === 0, app.log);
  await tray.end();
}

/** The window has something on it; the picture is for people. */
function windowShows(env, name) {
  return picture(env, visible(env), name).colours > 32;
}

/** The folder of a program that stands for the user's browser: it writes down what it was given. */
function browser(file) {
  const bin = folder("bin");
  writeFileSync(join(bin, "xdg-open"), `#!/bin/sh\nprintf '%s\\n' "$@" >>'${file}'\n`, { mode: 0o755 });
  return bin;
}

/** What the page may not have. */
async function refusals(window) {
  const code = (command, given) => window.invoke(command, given).then(() => "answered", (error) => error.code);
  const codes = {
    file: await code("open_external", { url: "file:///etc/passwd" }),
    script: await code("open_external", { url: "javascript:alert(1)" }),
    elsewhere: await code("api_request", { method: "GET", path: "http://127.0.0.1:1/api/v1/tasks", body: null }),
    assets: await code("api_request", { method: "GET", path: "/page.js", body: null }),
    stream: await code("api_request", { method: "GET", path: "/api/v1/changes", body: null }),
  };
  const wanted = { file: "not_permitted", script: "not_permitted", elsewhere: "bad_request", assets: "bad_request", stream: "bad_request" };
  check("nothing but web addresses is opened, nothing but the API is asked", JSON.stringify(codes) === JSON.stringify(wanted), codes);
}

/** A desktop that shows no tray icons: closing quits. */
async function withoutTray(env) {
  const data = folder("plain");
  const app = launch(env, data, "--demo");
  const id = await shown(env);
  await waitUntil("engine", () => existsSync(join(data, "runtime.json")));
  pressClose(env, id);
  const { code, ms } = await ended(app, STOPS_MS + 1_000);
  check("without a tray closing quits, and the engine stops", code === 0 && !existsSync(join(data, "runtime.json")), {
    code,
    ms,
    log: app.log,
  });
}

/** A desktop without the tray's library: a file that is none stands in its place. */
async function withoutTrayLibrary(env) {
  const libraries = folder("libraries");
  for (const name of ["libayatana-appindicator3.so", "libappindicator3.so"]) {
    for (const suffix of ["", ".1"]) writeFileSync(join(libraries, name + suffix), "none");
  }
  const app = launch({ ...env, LD_LIBRARY_PATH: libraries }, folder("bare"));
  const id = await shown(env);
  await waitUntil("word about the tray", () => app.log.includes("there is no tray icon"));
  check("without the tray's library the window opens", !app.log.includes("panicked"), app.log);
  pressClose(env, id);
  const { code } = await ended(app, STOPS_MS + 1_000);
  check("and closing it quits", code === 0, app.log);
}

/** A headless engine is shown, not doubled. */
async function attached(env) {
  const data = folder("headless");
  const engine = start(
    taskbell,
    ["serve", "--demo", "--json", ...args(data)],
    { env, stdio: ["ignore", "pipe", "pipe"] },
  );
  const ready = JSON.parse(await waitUntil("headless engine", () => engine.log.match(/^\{.*"ready":true.*\}$/m)?.[0]));
  // Two ends that nobody is there to be told of.
  const notices = () => JSON.parse(run(taskbell, ["notice", "list", "--json", "--data-dir", data], env));
  const early = [1, 2].map(() => JSON.parse(run(taskbell, ["send", "demo", "steps=1 interval=0.1", "--json", "--data-dir", data], env)).task);
  await waitUntil("two recorded ends", () => notices().items.filter((one) => one.outcome === "no-desktop").length === 2);
  const onScreen = () => Number(run("dunstctl", ["count", "displayed"], env)) + Number(run("dunstctl", ["count", "waiting"], env));
  check("without a window nothing is shown", onScreen() === 0);
  const window = await openWindow(env, args(data));
  await shown(env);
  await waitUntil("digest", () => onScreen() === 1);
  const digest = notices().items.filter((one) => early.includes(one.task));
  check("a window that comes later has one notice of both", digest.every((one) => one.outcome === "merged"), digest);
  run("dunstctl", ["close-all"], env);
  await waitUntil("empty screen", () => onScreen() === 0);
  const heard = await listen(window, null);
  await waitUntil("feed", async () => (await heard()).some((one) => one.link === "live"));
  const sent = JSON.parse(run(taskbell, ["send", "demo", "steps=1 interval=0.1", "--json", "--data-dir", data], env));
  await waitUntil("change of another program's task", async () =>
    changesIn(await heard()).some((change) => change.task === sent.task),
  );
  await waitUntil("notice of it", () => onScreen() === 1);
  check("what happens while a window is attached is shown", true);
  run("dunstctl", ["close-all"], env);
  const tasks = await asked(window, "GET", "/tasks");
  check("an attached window shows the headless engine's tasks and hears of changes", tasks.items[0].task === sent.task, tasks);
  const held = run(taskbell, ["doctor", "--json", "--data-dir", data], env);
  check("the headless engine keeps its folder", JSON.parse(readFileSync(join(data, "runtime.json"), "utf8")).pid === ready.pid, held);
  await secondStartRaises(env, data, "a second start raises the attached window too");
  const asks = JSON.parse(run(taskbell, ["send", "demo", "steps=2 interval=0.1 ask=1", "--json", "--data-dir", data], env)).task;
  await waitUntil("question on the screen", () => onScreen() === 1);
  pressClose(env, await shown(env));
  await gone(env);
  await waitUntil("empty screen", () => onScreen() === 0);
  const left = await waitUntil("word of the question's notice", () =>
    notices().items.find((one) => one.task === asks && one.outcome === "no-desktop"),
  );
  check("a window that leaves takes its notices along, and the next one is told what waits", left.kind === "waiting", left);
  const listed = run(taskbell, ["tasks", "--json", "--data-dir", data], env);
  check("the engine goes on without its window", listed.includes(sent.task), listed);
  await window.close().catch(() => undefined); // Its program has ended.
  signal(engine, "SIGTERM");
  check("and stops when it is told to", (await ended(engine, STOPS_MS)).code === 0, engine.log);
}

/** The engine that a window shows ends: tasks are followed on, by the window's own program. */
async function takenOver(env) {
  const data = folder("orphaned");
  const engine = start(taskbell, ["serve", "--json", ...args(data)], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  await waitUntil("headless engine", () => engine.log.includes('"ready":true'));
  const window = await openWindow(env, args(data));
  await shown(env);
  const said = () => window.execute("return document.body.innerText");
  await waitUntil("attached page", async () => (await said()).includes("No open tasks"));
  signal(engine, "SIGKILL");
  await waitUntil("word that the engine is gone", async () => (await said()).includes("The engine does not answer"));
  check("an attached window says that its engine is gone", true);
  await waitUntil("engine of the window", () =>
    run(taskbell, ["tasks", "--json", "--data-dir", data], env).includes('"items":[]'),
  );
  await waitUntil("page that works again", async () => (await said()).includes("follows the tasks itself now"));
  const agents = await asked(window, "GET", "/agents");
  check("and its program runs one in its place, and says so", agents.items.length === 0, agents);
  const second = spawnSync(taskbell, ["serve", ...args(data)], { env, encoding: "utf8", timeout: STEP_MS });
  check("which holds the folder like any other", second.status === 1 && second.stderr.includes("held"), second.stderr);
  await window.close();
  await gone(env);
}

/** Another program has the port: following goes on, and the window is raised all the same. */
async function takenPort(env) {
  const holder = createServer();
  await new Promise((done) => holder.listen(0, "127.0.0.1", done));
  const data = folder("portless");
  const given = ["--data-dir", data, "--gateway", `127.0.0.1:${holder.address().port}`, "--inbox", "127.0.0.1:0", "--credential-store", "memory"];
  const window = await openWindow(env, given);
  await shown(env);
  const health = await asked(window, "GET", "/health");
  const gateway = health.items.find((item) => item.component === "gateway");
  check("a taken port does not stop the window, and its holder is named", gateway?.detail.includes(String(process.pid)), health);
  await waitUntil("engine", () => existsSync(join(data, "runtime.json")));
  const second = start(program, given, { env, stdio: ["ignore", "pipe", "pipe"] });
  check("a second start raises that window as well", (await ended(second, STEP_MS)).code === 0, second.log);
  await window.close();
  holder.close();
  await gone(env);
}

/** A signal, as the end of a session sends it. */
async function terminated(env) {
  const data = folder("signalled");
  const app = launch(env, data, "--demo");
  await shown(env);
  await waitUntil("engine", () => existsSync(join(data, "runtime.json")));
  // Not to WebKit's processes, which are in its group.
  process.kill(app.pid, "SIGTERM");
  const { code, ms } = await ended(app, STOPS_MS);
  check("SIGTERM stops the engine cleanly", code === 0 && !existsSync(join(data, "runtime.json")), { code, ms, log: app.log });
}

await test(LIMIT_MS, async () => {
  const env = await desktop();
  await withoutTray(env);
  await withoutTrayLibrary(env);
  await terminated(env);
  await attached(env);
  await takenOver(env);
  await takenPort(env);
  await withTray(env);
  await notices(env);
});
