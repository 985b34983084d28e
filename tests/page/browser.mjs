// Debian's Chromium with a profile of its own, which goes nowhere but to this machine.
//
//   TASKBELL_PAGE  a folder with a built page (ui/dist) that is shown instead of the one in the program
import { readFileSync, statSync } from "node:fs";
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
  if (process.env.TASKBELL_PAGE) await showFrom(context, process.env.TASKBELL_PAGE);
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

const TYPES = { js: "text/javascript", css: "text/css", html: "text/html", svg: "image/svg+xml", woff2: "font/woff2" };

/** The page's files from a folder; the headers, and with them the policy, are those of the engine's own page. */
async function showFrom(context, folder) {
  await context.route(
    (url) => !url.pathname.startsWith("/api/"),
    async (route) => {
      const url = new URL(route.request().url());
      const file = join(folder, url.pathname === "/" ? "index.html" : url.pathname);
      if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
        await route.continue();
        return;
      }
      const whole = await route.fetch({ url: `${url.origin}/` });
      const type = TYPES[file.split(".").at(-1)] ?? "application/octet-stream";
      const headers = { ...whole.headers(), "content-type": type };
      delete headers["content-length"];
      await route.fulfill({ headers, body: readFileSync(file) });
    },
  );
}
