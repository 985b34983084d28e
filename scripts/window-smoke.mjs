#!/usr/bin/env node
// Opens the real window on a screen of its own and looks at it: through WebKit's driver, and as a picture.
//
//   node scripts/window-smoke.mjs PROGRAM
//
//   TASKBELL_SCREENSHOTS   a folder that keeps the pictures (light.png, dark.png and those of the smallest window)
//
// Everything it starts ends with it: its screen (Xvfb), session bus, driver and window.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import {
  check,
  desktop,
  openWindow,
  picture,
  program,
  run,
  STEP_MS,
  test,
  waitUntil,
} from "../tests/window/support.mjs";

const LIMIT_MS = 120_000;
const root = resolve(import.meta.dirname, "..");

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
     // Over everything, so that the click meets it.
     Object.assign(link.style, { position: "fixed", top: "0", left: "0", zIndex: "9999" });
     document.body.append(link);`,
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
  const gone = spawnSync(program, [], { env: { ...env, DISPLAY: ":9999" }, encoding: "utf8", timeout: STEP_MS });
  check(
    "nor with one that has gone does it panic",
    gone.status === 1 && gone.stderr.includes("does not take windows") && !gone.stderr.includes("panicked"),
    { status: gone.status, said: gone.stderr },
  );
  check(
    "without a screen the program says so and ends with 1",
    result.status === 1 && said.includes("there is no display") && !said.includes("panicked"),
    { status: result.status, said },
  );
}

await test(LIMIT_MS, async () => {
  const env = await desktop();
  withoutScreen(env);
  const light = await look(env, "light");
  await fence(env, light);
  await light.close();
  const dark = await look(env, "dark");
  await dark.close();
});
