// Debian's Chromium with a profile of its own, which goes nowhere but to this machine.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const require = createRequire(join(root, "ui/package.json"));
const { chromium } = require("playwright-core");

export const axeSource = require.resolve("axe-core/axe.min.js");

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Ends with `close`. */
export function launch(more = []) {
  return chromium.launch({
    executablePath: process.env.TASKBELL_CHROMIUM ?? "/usr/bin/chromium",
    args: [...FLAGS, ...more],
    timeout: 60_000,
  });
}

/**
 * A page of its own session, with what went wrong in it. Nothing but the engine can be asked. `first` runs before
 * anything of the page.
 */
export async function open(browser, engine, { first, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  if (first) await page.addInitScript(first);
  page.problems = [];
  page.asked = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") page.problems.push(message.text());
  });
  page.on("request", (request) => page.asked.push(request.url()));
  await page.goto(await engine.newPage());
  return page;
}
