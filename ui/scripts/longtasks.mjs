#!/usr/bin/env node
// Measures how long the page's own thread is busy while tasks change 1,000 times a second: tasks of over 50 ms.
// The changes come from agents that stream them through a real engine; what really arrived is counted and told.
//
//   TASKBELL_BIN   the program (default: the debug build; measure the release build)
//   MEASURED_SECONDS, RATE   default: 10 seconds, 1,000 changes a second
import { Agent } from "../../tests/page/agent.mjs";
import { launch, open } from "../../tests/page/browser.mjs";
import { Engine } from "../../tests/page/engine.mjs";

const SECONDS = Number(process.env.MEASURED_SECONDS ?? 10);
const RATE = Number(process.env.RATE ?? 1000);
const TASKS = 50;

/** Counts what the feed brings, beside the page, which is none the wiser. */
function countArrivals() {
  globalThis.arrived = 0;
  const Plain = globalThis.EventSource;
  globalThis.EventSource = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => (globalThis.arrived += 1));
    }
  };
}

const engine = await Engine.start();
const agent = await Agent.start("busy");
const browser = await launch();
try {
  await engine.call("POST", "/agents", { name: agent.name, url: agent.url });
  const ids = [];
  for (let at = 0; at < TASKS; at += 1) {
    const task = await engine.send(`Busy task ${at + 1}`, agent.name);
    ids.push(task.slice(task.indexOf("/") + 1));
  }
  const page = await open(browser, engine, { first: countArrivals });
  await page.getByRole("link", { name: "Tasks" }).click();
  await page
    .getByRole("option", { name: /Busy task/ })
    .first()
    .waitFor();
  const attached = () => ids.filter((id) => (agent.listeners.get(id)?.size ?? 0) > 0).length;
  const limit = performance.now() + 20_000;
  while (attached() < TASKS && performance.now() < limit) await new Promise((next) => setTimeout(next, 100));
  await page.evaluate(() => {
    globalThis.long = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.long.push(Math.round(entry.duration));
    }).observe({ type: "longtask" });
  });
  // A measure that sees nothing would be taken for a page that is quick. A task of the page's own: what the
  // driver runs is not counted.
  await page.evaluate(() => {
    setTimeout(() => {
      const end = performance.now() + 120;
      while (performance.now() < end);
    });
  });
  await page.waitForFunction(() => globalThis.long.some((one) => one >= 100), undefined, { timeout: 5_000 });
  await page.evaluate(() => (globalThis.long.length = globalThis.arrived = 0));
  const began = performance.now();
  let sent = 0;
  while (performance.now() - began < SECONDS * 1000) {
    const due = Math.floor(((performance.now() - began) / 1000) * RATE);
    for (; sent < due; sent += 1) {
      agent.update(ids[sent % TASKS], { state: "WORKING", text: `Step ${sent} of many` });
    }
    await new Promise((next) => setTimeout(next, 5));
  }
  const took = (performance.now() - began) / 1000;
  await page.waitForTimeout(500);
  const [long, arrived] = await page.evaluate(() => [globalThis.long, globalThis.arrived]);
  const shown = await page
    .getByText(/Step \d+ of many/)
    .first()
    .textContent()
    .catch(() => null);
  console.log(
    JSON.stringify({
      attached: attached(),
      seconds: Number(took.toFixed(1)),
      sentPerSecond: Math.round(sent / took),
      arrivedPerSecond: Math.round(arrived / took),
      longTasks: long.length,
      longestMs: Math.max(0, ...long),
      busyMs: long.reduce((sum, one) => sum + one, 0),
      lastShown: shown,
    }),
  );
} finally {
  await browser.close();
  await Promise.all([engine.stop(), agent.stop()]);
}
