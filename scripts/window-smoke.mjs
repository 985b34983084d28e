#!/usr/bin/env node
// Opens the real window on a screen of its own and looks at it: through WebKit's driver, and as a picture.
//
//   node scripts/window-smoke.mjs PROGRAM
//
//   TASKBELL_SCREENSHOTS   a folder that keeps the pictures (light.png, dark.png and those of the smallest window)
//
// Everything it starts ends with it: its screen (Xvfb), session bus, driver and window. Node, because it has a
// client for the driver's protocol (fetch) and needs nothing installed beside it.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const LIMIT_MS = 120_000;
const STEP_MS = 20_000;

const root = resolve(import.meta.dirname, "..");
const program = resolve(process.argv[2] ?? "target/debug/taskbell-desktop");
const scratch = mkdtempSync(join(tmpdir(), "taskbell-window-"));
const pictures = process.env.TASKBELL_SCREENSHOTS ? resolve(process.env.TASKBELL_SCREENSHOTS) : scratch;
mkdirSync(pictures, { recursive: true });

const children = [];
let passed = 0;
let failed = 0;

function check(sentence, holds, seen) {
  holds ? (passed += 1) : (failed += 1);
  console.log(holds ? `ok      ${sentence}` : `FAILED  ${sentence}: ${JSON.stringify(seen)}`);
}

/** Starts a program in a process group of its own, so that what it starts ends with it. */
function start(command, args, options = {}) {
  const child = spawn(command, args, { detached: true, ...options });
  child.log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (text) => (child.log = (child.log + text).slice(-4000)));
  }
  child.on("error", (error) => (child.log += `${command}: ${error.message}\n`));
  children.push(child);
  return child;
}

/** Signals a whole process group. False when nothing of it is left. */
function signal(child, name) {
  try {
    return process.kill(-child.pid, name);
  } catch {
    return false;
  }
}

function cleanUp() {
  // Asked first, because the screen and the bus take their lock files with them; last started, first ended.
  for (const child of children.toReversed()) {
    if (child.pid === undefined) continue;
    signal(child, "SIGTERM");
    const end = performance.now() + 2000;
    // A child of ours stays visible until this program's loop runs again: its state tells that it has ended.
    while (performance.now() < end && spawnSync("pgrep", ["-g", child.pid, "-r", "R,S,D,T"]).status === 0);
    signal(child, "SIGKILL");
  }
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}

function die(reason) {
  console.log(`FAILED  ${reason}`);
  for (const child of children.filter((one) => one.log))
    console.log(`--- ${child.spawnfile}\n${child.log.trim()}`);
  cleanUp();
  console.log(`${passed} passed, ${failed + 1} failed`);
  process.exit(1);
}

async function waitUntil(what, ask, limit = STEP_MS) {
  const end = performance.now() + limit;
  let last;
  while (performance.now() < end) {
    try {
      const value = await ask();
      if (value) return value;
    } catch (error) {
      last = error.message;
    }
    await new Promise((next) => setTimeout(next, 50));
  }
  throw new Error(`no ${what} within ${limit / 1000} s${last ? ` (${last})` : ""}`);
}

/** Runs a program to its end; its output, or an error that has it. */
function run(command, args, env) {
  const result = spawnSync(command, args, { env, encoding: "utf8", timeout: STEP_MS });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`${command} ended with ${result.status}: ${result.stderr.trim()}`);
  return result.stdout.trim();
}

const freePort = () =>
  new Promise((done, fail) => {
    const server = createTcpServer();
    server.on("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** The environment of a desktop that is nobody's: own screen, own bus, own folders. */
async function desktop() {
  const folder = (name) => {
    const path = join(scratch, name);
    mkdirSync(path, { mode: 0o700 });
    return path;
  };
  const env = {
    PATH: process.env.PATH,
    LANG: "C.UTF-8",
    HOME: folder("home"),
    XDG_RUNTIME_DIR: folder("runtime"),
    XDG_DATA_HOME: folder("data"),
    XDG_CONFIG_HOME: folder("config"),
    XDG_CACHE_HOME: folder("cache"),
    GDK_BACKEND: "x11",
    NO_AT_BRIDGE: "1",
    // A screen without a graphics card cannot share buffers with one.
    WEBKIT_DISABLE_DMABUF_RENDERER: process.env.WEBKIT_DISABLE_DMABUF_RENDERER ?? "1",
    LIBGL_ALWAYS_SOFTWARE: process.env.LIBGL_ALWAYS_SOFTWARE ?? "1",
  };
  const screen = start("Xvfb", ["-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp"], {
    env,
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  let display = "";
  screen.stdio[3].on("data", (text) => (display += text));
  await waitUntil("screen", () => display.endsWith("\n"));
  env.DISPLAY = `:${display.trim()}`;

  const bus = start(
    "dbus-daemon",
    ["--session", "--nofork", "--print-address=1", `--address=unix:path=${env.XDG_RUNTIME_DIR}/bus`],
    {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  env.DBUS_SESSION_BUS_ADDRESS = await waitUntil("session bus", () => bus.log.match(/^(unix:.*)\n/m)?.[1]);
  return env;
}

/** One window behind WebKit's driver. */
async function openWindow(env) {
  const port = await freePort();
  const driver = start("WebKitWebDriver", ["--host=127.0.0.1", `--port=${port}`], {
    env: { ...env, TAURI_WEBVIEW_AUTOMATION: "true" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const call = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(STEP_MS),
    });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${value?.message ?? answer.status}`);
    return value;
  };
  await waitUntil("driver", () => call("GET", "/status"));
  const { sessionId } = await call("POST", "/session", {
    capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary: program, args: [] } } },
  });
  const session = `/session/${sessionId}`;
  return {
    get: (path) => call("GET", `${session}${path}`),
    execute: (script, ...args) => call("POST", `${session}/execute/sync`, { script, args }),
    executeAsync: (script, ...args) => call("POST", `${session}/execute/async`, { script, args }),
    async click(selector) {
      const found = await call("POST", `${session}/element`, { using: "css selector", value: selector });
      await call("POST", `${session}/element/${Object.values(found)[0]}/click`, {});
    },
    async close() {
      await call("DELETE", session);
      signal(driver, "SIGTERM");
    },
  };
}

/** A picture of a window, and how many colours and how much light (0 to 1) it has. */
function picture(env, id, name) {
  const file = join(pictures, `${name}.png`);
  run("import", ["-silent", "-window", id, file], env);
  const [colours, light] = run("identify", ["-format", "%k %[fx:mean]", file], env).split(" ").map(Number);
  return { colours, light };
}

async function look(env, scheme) {
  const window = await openWindow({ ...env, GTK_THEME: scheme === "dark" ? "Adwaita:dark" : "Adwaita" });
  const text = () =>
    window.execute("return document.querySelector('[data-testid=version]')?.textContent.trim()");
  const expected = `Version ${readFileSync(join(root, "Cargo.toml"), "utf8").match(/^version = "(.+)"$/m)[1]}`;
  const version = await waitUntil("version on the page", async () => {
    const now = await text();
    return now && !now.startsWith("Reading") ? now : undefined;
  });
  check(`${scheme}: the page says the version of the program`, version === expected, version);
  const dark = await window.execute("return matchMedia('(prefers-color-scheme: dark)').matches");
  check(`${scheme}: the page follows the desktop's scheme`, dark === (scheme === "dark"), dark);
  const id = await waitUntil("window named Taskbell", () =>
    run("xdotool", ["search", "--onlyvisible", "--name", "^Taskbell$"], env),
  );
  // The page is on the screen one frame after it has drawn.
  await window.executeAsync("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
  const seen = await waitUntil("picture of the page", () => {
    const now = picture(env, id, scheme);
    return now.colours > 32 ? now : undefined;
  });
  check(`${scheme}: the window is painted`, scheme === "dark" ? seen.light < 0.3 : seen.light > 0.7, seen);

  run("xdotool", ["windowsize", id, "720", "480"], env);
  await waitUntil("smaller page", () => window.execute("return innerWidth === 720 && innerHeight === 480"));
  const overflow = await window.execute(
    "const page = document.documentElement; return [page.scrollWidth - innerWidth, page.scrollHeight - innerHeight]",
  );
  check(
    `${scheme}: everything fits into the smallest window`,
    overflow.every((by) => by <= 0),
    overflow,
  );
  await window.executeAsync("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
  picture(env, id, `${scheme}-small`);
  return window;
}

/** What agent text could try if it ever became active. None of it may work. */
async function fence(env, window) {
  const home = await window.get("/url");
  let asked = 0;
  const outside = createServer((_request, answer) => {
    asked += 1;
    answer.setHeader("Access-Control-Allow-Origin", "*").end("hello");
  });
  await new Promise((done) => outside.listen(0, "127.0.0.1", done));
  const address = `http://127.0.0.1:${outside.address().port}/`;

  await window.execute("location.href = arguments[0]; window.open(arguments[0]);", address);
  // A script alone may not open a window anywhere; a click of the user may, so this one is the user's.
  await window.execute(
    `const link = document.createElement("a");
     link.id = "outside";
     link.target = "_blank";
     link.href = arguments[0];
     link.textContent = "outside";
     document.querySelector("main").append(link);`,
    address,
  );
  await window.click("#outside");
  const blocked = await window.executeAsync(
    `const [address, done] = arguments;
     const script = document.createElement("script");
     script.textContent = "window.ranInline = true";
     document.head.append(script);
     const image = new Image();
     const loaded = new Promise((next) => {
       image.onload = () => next("loaded");
       image.onerror = () => next("refused");
     });
     image.src = address + "image.png";
     const call = (command, args) =>
       window.__TAURI_INTERNALS__.invoke(command, args).then(() => "answered", () => "refused");
     Promise.all([
       fetch(address).then(() => "answered", () => "refused"),
       loaded,
       call("plugin:window|close", { label: "main" }),
       call("plugin:event|emit", { event: "x", payload: 1 }),
       call("no_such_command", {}),
     ]).then((answers) => done({ answers, inline: window.ranInline === true, global: "__TAURI__" in window }));`,
    address,
  );
  check(
    "no fetch, picture, plugin or unknown command is answered",
    blocked.answers.every((one) => one === "refused"),
    blocked,
  );
  check("an inline script does not run", !blocked.inline, blocked);
  check("Tauri's interface is not a global name", !blocked.global, blocked);
  const windows = run("xdotool", ["search", "--onlyvisible", "--class", "taskbell"], env).split("\n");
  check("no second window opens", windows.length === 1, windows);
  const now = await window.get("/url");
  check("the window stays on its own page", now === home, now);
  check("no request leaves the page", asked === 0, asked);
  outside.close();
}

function withoutScreen(env) {
  const { DISPLAY: _display, ...blind } = env;
  const result = spawnSync(program, [], { env: blind, encoding: "utf8", timeout: STEP_MS });
  if (result.error) throw result.error;
  const said = result.stderr.trim();
  check(
    "without a screen the program says so and ends with 1",
    result.status === 1 && said.includes("there is no display") && !said.includes("panicked"),
    { status: result.status, said },
  );
}

const alarm = setTimeout(() => die(`not done within ${LIMIT_MS / 1000} s`), LIMIT_MS);
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => die(`stopped by ${name}`));
try {
  const env = await desktop();
  withoutScreen(env);
  const light = await look(env, "light");
  await fence(env, light);
  await light.close();
  const dark = await look(env, "dark");
  await dark.close();
} catch (error) {
  die(error.message);
}
clearTimeout(alarm);
cleanUp();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
