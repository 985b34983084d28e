// What the tests of the real window share: a desktop that is nobody's, programs that end with the test, WebKit's
// driver, pictures, and the counting of what holds.
//
// Node, because it has a client for the driver's protocol (fetch) and needs nothing installed beside it.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const STEP_MS = 20_000;

export const program = resolve(process.argv[2] ?? "target/debug/taskbell-desktop");
export const scratch = mkdtempSync(join(tmpdir(), "taskbell-window-"));
const pictures = process.env.TASKBELL_SCREENSHOTS ? resolve(process.env.TASKBELL_SCREENSHOTS) : scratch;
mkdirSync(pictures, { recursive: true });

const children = [];
let passed = 0;
let failed = 0;

export function check(sentence, holds, seen) {
  holds ? (passed += 1) : (failed += 1);
  console.log(holds ? `ok      ${sentence}` : `FAILED  ${sentence}: ${JSON.stringify(seen)}`);
}

/** Starts a program in a process group of its own, so that what it starts ends with it. */
export function start(command, args, options = {}) {
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
export function signal(child, name) {
  try {
    return process.kill(-child.pid, name);
  } catch {
    return false;
  }
}

export function cleanUp() {
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

export function die(reason) {
  console.log(`FAILED  ${reason}`);
  for (const child of children.filter((one) => one.log))
    console.log(`--- ${child.spawnfile}\n${child.log.trim()}`);
  cleanUp();
  console.log(`${passed} passed, ${failed + 1} failed`);
  process.exit(1);
}

export async function waitUntil(what, ask, limit = STEP_MS) {
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
export function run(command, args, env) {
  const result = spawnSync(command, args, { env, encoding: "utf8", timeout: STEP_MS });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`${command} ended with ${result.status}: ${result.stderr.trim()}`);
  return result.stdout.trim();
}

export const freePort = () =>
  new Promise((done, fail) => {
    const server = createTcpServer();
    server.on("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** The environment of a desktop that is nobody's: own screen, own bus, own folders. */
export async function desktop() {
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
  // Without -noreset it starts anew whenever its last window has closed, and refuses whoever comes meanwhile.
  const screen = start("Xvfb", ["-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"], {
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
export async function openWindow(env, args = []) {
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
    if (!answer.ok) throw new Error(`${method} ${path}: ${value?.error ?? answer.status} ${value?.message ?? ""}`);
    return value;
  };
  await waitUntil("driver", () => call("GET", "/status"));
  const { sessionId } = await call("POST", "/session", {
    capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary: program, args } } },
  });
  const session = `/session/${sessionId}`;
  /** By CSS, or by XPath after `xpath:`. */
  const find = async (selector) => {
    const xpath = selector.startsWith("xpath:") && selector.slice("xpath:".length);
    const given = xpath ? { using: "xpath", value: xpath } : { using: "css selector", value: selector };
    return Object.values(await call("POST", `${session}/element`, given))[0];
  };
  return {
    get: (path) => call("GET", `${session}${path}`),
    execute: (script, ...args) => call("POST", `${session}/execute/sync`, { script, args }),
    executeAsync: (script, ...args) => call("POST", `${session}/execute/async`, { script, args }),
    async click(selector) {
      await call("POST", `${session}/element/${await find(selector)}/click`, {});
    },
    /** Types into a field, as a keyboard does. */
    async type(selector, text) {
      await call("POST", `${session}/element/${await find(selector)}/value`, { text });
    },
    /** Presses keys together: what holds first, the key last. To whatever has the focus. */
    async keys(...held) {
      const down = held.map((value) => ({ type: "keyDown", value }));
      const up = held.toReversed().map((value) => ({ type: "keyUp", value }));
      const actions = [{ type: "key", id: "keyboard", actions: [...down, ...up] }];
      await call("POST", `${session}/actions`, { actions });
    },
    /** One command of the program, as the page calls it: its value, or an error with its code. */
    async invoke(command, args = {}) {
      const [value, error] = await call("POST", `${session}/execute/async`, {
        script: `const [command, args, done] = arguments;
          window.__TAURI_INTERNALS__.invoke(command, args).then((value) => done([value, null]), (error) => done([null, error]));`,
        args: [command, args],
      });
      if (error !== null) throw Object.assign(new Error(error.message ?? String(error)), { code: error.code });
      return value;
    },
    async close() {
      await call("DELETE", session);
      signal(driver, "SIGTERM");
    },
  };
}

/** A picture of a window, and how many colours and how much light (0 to 1) it has. */
export function picture(env, id, name) {
  const file = join(pictures, `${name}.png`);
  run("import", ["-silent", "-window", id, file], env);
  const [colours, light] = run("identify", ["-format", "%k %[fx:mean]", file], env).split(" ").map(Number);
  return { colours, light };
}

/** Runs a whole test: its end is the end of everything that it started. */
export async function test(limit, body) {
  const alarm = setTimeout(() => die(`not done within ${limit / 1000} s`), limit);
  for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => die(`stopped by ${name}`));
  try {
    await body();
  } catch (error) {
    die(error.message);
  }
  clearTimeout(alarm);
  cleanUp();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
