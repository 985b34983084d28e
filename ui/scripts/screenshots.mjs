#!/usr/bin/env node
// Writes docs/screenshots/*.png in light and dark: a real engine, agents with realistic work, Debian's Chromium.
//
//   TASKBELL_BIN   the program (default: the debug build)
//
// A word after the name takes only the pictures whose names hold it.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { launch, open } from "../../tests/page/browser.mjs";
import { Engine } from "../../tests/page/engine.mjs";
import { playGateway, receiver } from "../../tests/page/gateway.mjs";
import { playCallbacks } from "../../tests/page/inbox.mjs";
import { play, REPORT, TITLES } from "../../tests/page/story.mjs";

const folder = resolve(import.meta.dirname, "../../docs/screenshots");
mkdirSync(folder, { recursive: true });

const LONG = TITLES.find((title) => title.length > 150);

/** Some 300 kB of it. */
const ANSWER = Array.from(
  { length: Math.ceil(300_000 / REPORT.length) },
  (_, at) => `## Part ${at + 1}\n\n${REPORT}`,
).join("\n");
const ANSWERED = "Review all indexes of the catalogue, one by one";

const fresh = await Engine.start();
const engine = await Engine.start();
const browser = await launch();
const hook = await receiver();
let agents = new Map();
try {
  const story = await play(engine, { extra: 480 });
  agents = story.agents;
  agents.set("release-train", await playCallbacks(engine));
  await playGateway(engine, hook);
  agents.get("reader").begin = () => ({
    state: "COMPLETED",
    text: "All of them are reviewed.",
    artifacts: [{ artifactId: "review.md", name: "review.md", parts: [{ text: ANSWER }] }],
  });
  story.tasks.set(ANSWERED, await engine.send(ANSWERED, "reader"));
  const hash = (title) => {
    const task = story.tasks.get(title);
    const slash = task.indexOf("/");
    return `#/tasks/${task.slice(0, slash)}/${encodeURIComponent(task.slice(slash + 1))}`;
  };
  for (const colorScheme of ["light", "dark"]) {
    const shoot = async (page, name) => {
      if (process.argv[2] && !name.includes(process.argv[2])) return;
      await page.evaluate(() => document.fonts.ready);
      await page.waitForTimeout(400);
      await page.screenshot({ path: resolve(folder, `${name}-${colorScheme}.png`) });
    };
    const first = await open(browser, fresh, { colorScheme });
    await first.getByText("Try the demo").waitFor();
    await shoot(first, "first-run");
    await first.keyboard.press("Control+4");
    await first.getByLabel("Base URL").waitFor();
    await shoot(first, "gateway-empty");
    await first.context().close();

    const page = await open(browser, engine, { colorScheme });
    page.setDefaultTimeout(60_000);
    const see = async (title) => {
      await page.evaluate((to) => (location.hash = to), hash(title));
      // The engine cuts long titles.
      await page.getByRole("heading", { name: title.slice(0, 60) }).waitFor();
    };
    await page.getByRole("listbox").waitFor();
    await see("Migrate billing to the new ledger");
    await page.getByRole("tab", { name: "Timeline" }).click();
    await shoot(page, "tasks");
    await page.getByRole("link", { name: "Needs you" }).click();
    await shoot(page, "needs-you");
    await see("Compare recall of the three candidate indexes");
    await page.getByRole("tab", { name: "Result" }).click();
    await shoot(page, "result");
    await see(ANSWERED);
    await page.getByRole("heading", { name: "Part 1", exact: true }).waitFor();
    // In the midst of it.
    await page.locator("#task-panel").hover();
    await page.mouse.wheel(0, 1100);
    await shoot(page, "long-answer");
    await see("Nightly dependency review");
    await shoot(page, "reconnecting");
    await see("لخّص ملاحظات اجتماع الأسبوع الماضي وأرسل القرارات");
    await shoot(page, "right-to-left");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("re");
    await shoot(page, "palette");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await shoot(page, "keys");
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Health" }).click();
    await page.getByRole("button", { name: "Self-test" }).click();
    await page.getByText(/of \d+ well/).waitFor();
    await shoot(page, "health");
    await page.keyboard.press("Control+,");
    for (const part of ["Notices", "Security", "Appearance"]) {
      await page.getByRole("link", { name: part, exact: true }).click();
      await page.getByRole("heading", { name: part, exact: true, level: 2 }).waitFor();
      await shoot(page, `settings-${part.toLowerCase()}`);
    }
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.locator("[role=listbox]").getByRole("option", { name: /ahead/ }).click();
    await page.getByRole("rowheader", { name: "/status/state" }).waitFor();
    await shoot(page, "inbox");
    await page.getByRole("button", { name: "Open the task" }).click();
    await page.getByRole("tab", { name: /Callbacks/ }).click();
    await page.locator("ol .entry").first().waitFor();
    await shoot(page, "callbacks");
    await page.getByRole("link", { name: "Gateway" }).click();
    await page.getByText("requests").first().waitFor();
    await shoot(page, "gateway");
    await page.getByRole("tab", { name: "Traffic" }).click();
    await page.getByRole("option").first().click();
    await shoot(page, "traffic");
    await page.getByRole("tab", { name: "Deliveries" }).click();
    await page.getByRole("option").first().click();
    await shoot(page, "deliveries");
    await page.getByRole("link", { name: "Agents" }).click();
    await page.getByRole("option", { name: /ledger/ }).click();
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByText("It answers.").waitFor();
    await shoot(page, "agents");
    await page.getByRole("button", { name: "Add agent…" }).click();
    await page
      .getByLabel("Address, or a curl line")
      .fill("curl https://planner.example.com/a2a -H 'Authorization: Bearer 0a1b2c3d4e5f'");
    await shoot(page, "add-agent");
    await page.keyboard.press("Escape");
    await see(LONG);
    await page.setViewportSize({ width: 720, height: 480 });
    await shoot(page, "small");
    await page.context().close();
  }
} finally {
  await browser.close();
  await Promise.all([
    hook.stop(),
    fresh.stop(),
    engine.stop(),
    ...[...agents.values()].map((agent) => agent.stop()),
  ]);
}
