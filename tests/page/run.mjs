#!/usr/bin/env node
// The page in Debian's Chromium against a real engine: what a user does first, and what must never happen.
//
//   TASKBELL_BIN       the program (default: the debug build)
//   TASKBELL_CHROMIUM  the browser (default: /usr/bin/chromium)
//   TASKBELL_HOSTILE   another folder of hostile rows (default: tests/hostile)
//   TASKBELL_PEERS     where tests/peers/setup put the SDKs (default: ~/.cache/taskbell/peers)
//
// A word after the name runs only the stories that hold it.
//
// Everything it starts ends with it.
import { readFileSync } from "node:fs";
import { Agent } from "./agent.mjs";
import { agentOutput } from "./agent_output.mjs";
import { axeSource, launch, open } from "./browser.mjs";
import { check, count, show, waitUntil } from "./checks.mjs";
import { finding, health, keeping, settings } from "./desk.mjs";
import { Engine } from "./engine.mjs";
import { foreignPage } from "./foreign.mjs";
import { gateway } from "./gateway.mjs";
import { inbox } from "./inbox.mjs";
import { PEERS, withPeer } from "./peers.mjs";
import { play, TITLES } from "./story.mjs";

const LIMIT_MS = 600_000;

/** Rows of our own lists; a select has options too. */
const ROWS = "[role=listbox] [role=option]";
const CHOSEN = "[role=listbox] [aria-selected=true]";

const axe = readFileSync(axeSource, "utf8");
/** Breaches of the accessibility rules, as lines. The policy forbids scripts that are added, so it is evaluated. */
async function breaches(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
}

async function firstRun(browser, engine) {
  const page = await open(browser, engine);
  await page.getByRole("button", { name: /^Try the demo/ }).waitFor();
  check("the sign-in leaves the address", !page.url().includes("login"), page.url());
  check("the first run says how the keyring stands", await page.getByText(/The keyring/).first().isVisible());
  await page.getByRole("button", { name: "Show a test notice" }).click();
  await page.getByText(/The test notice was not shown|A test notice is on the desktop/).waitFor();
  check("a test notice says what came of it", true);
  const found = await breaches(page);
  check("no breach on the first screen", found.length === 0, found);
  await page.getByRole("button", { name: "Public address" }).click();
  await page.getByRole("heading", { name: "Public address", level: 2 }).waitFor();
  await page.keyboard.press("Control+2");
  check("what can wait leads to where it is set", true);
  await page.getByRole("button", { name: /^Try the demo/ }).click();
  await page.getByRole("option", { name: /Try Taskbell/ }).waitFor();
  check("the demo task appears", true);
  const answer = page.getByRole("textbox", { name: "Your answer" });
  await answer.waitFor();
  const waiting = await page.getByRole("link", { name: "Needs you" }).textContent();
  check("the rail counts what waits", waiting.includes("1"), waiting);
  await answer.fill("Go on, please");
  await answer.press("Control+Enter");
  await answer.waitFor({ state: "detached" });
  check("the question is answered in the page", true);
  await page.getByRole("heading", { name: "It worked" }).waitFor();
  check("the demo finishes and shows its result as nodes", true);
  await page.getByRole("tab", { name: "Timeline" }).click();
  check("the cut is drawn as a gap", await page.getByText(/text in between is not available/).first().isVisible());
  check("the reply is in the timeline", await page.getByText("Go on, please", { exact: true }).first().isVisible());
  check("nothing went wrong in the page", page.problems.length === 0, page.problems);
  const foreign = page.asked.filter((url) => !url.startsWith(engine.gateway));
  check("nothing but the engine was asked", foreign.length === 0, foreign);
  await page.context().close();

  const stranger = await browser.newPage();
  await stranger.goto(`${engine.gateway}/`);
  check("a page that is not signed in says so", await stranger.getByText("not signed in").waitFor().then(() => true));
  await stranger.goto(`${engine.gateway}/#login=0000`);
  await stranger.reload();
  check(
    "a used sign-in link says what to run",
    await stranger.getByText(/used already or is over a minute old/).waitFor().then(() => true),
  );
  await stranger.close();
}

async function actions(browser, engine, agent) {
  const page = await open(browser, engine);
  agent.begin = () => ({ state: "INPUT_REQUIRED", text: "Which branch?" });
  const asks = await engine.send("Deploy the preview", agent.name);
  await page.getByRole("link", { name: "Needs you" }).click();
  await page.getByRole("option", { name: /Deploy the preview/ }).click();
  await page.getByRole("textbox", { name: "Your answer" }).fill("main");
  await page.getByRole("button", { name: /^Reply/ }).click();
  await waitUntil("reply at the agent", () => agent.received.some((one) => one.parts[0]?.text === "main"));
  check("a reply goes to the task once", agent.received.filter((one) => one.parts[0]?.text === "main").length === 1);
  await show(page, asks);

  const id = asks.slice(asks.indexOf("/") + 1);
  agent.tasks.get(id).status.state = "TASK_STATE_COMPLETED";
  await page.getByRole("button", { name: /^Reconcile/ }).click();
  await page.getByText(/working → finished/).first().waitFor();
  check("reconcile reads the task and says what that changed", true);

  agent.begin = () => ({ state: "WORKING", text: "busy" });
  const runs = await engine.send("A long export", agent.name);
  await show(page, runs);
  await page.getByRole("heading", { name: "A long export" }).waitFor();
  await page.getByRole("button", { name: /^Pause/ }).click();
  await page.getByRole("button", { name: /^Follow again/ }).waitFor();
  await page.getByRole("button", { name: /^Follow again/ }).click();
  await page.getByRole("button", { name: /^Pause/ }).waitFor();
  check("following is paused and taken up again", true);
  await page.getByRole("button", { name: /^Cancel task/ }).click();
  await page.getByRole("button", { name: "Keep it" }).click();
  check("cancel asks first", agent.tasks.get(runs.split("/")[1]).status.state === "TASK_STATE_WORKING");
  await page.getByRole("button", { name: /^Cancel task/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
  await waitUntil("canceled task", async () => (await engine.call("GET", `/tasks/${runs}`)).state === "canceled");
  await page.getByRole("option", { name: /A long export.*canceled/ }).waitFor();
  check("cancel cancels", true);
  await page.getByRole("button", { name: /^Pin/ }).click();
  await page.getByRole("button", { name: /^Unpin/ }).waitFor();
  check("a task is pinned", true);
  await page.getByRole("button", { name: /^Archive/ }).click();
  await page.getByRole("option", { name: /A long export/ }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("option", { name: /A long export/ }).waitFor();
  check("archiving can be undone", true);
  check("nothing went wrong in the page", page.problems.length === 0, page.problems);
  await page.context().close();
}

async function keyboard(browser, engine, agent) {
  // Something to move to.
  agent.begin = () => ({ state: "COMPLETED", text: "Done." });
  await engine.send("Another one", agent.name);
  agent.begin = () => ({ state: "INPUT_REQUIRED", text: "Shall I?" });
  const page = await open(browser, engine);
  const { keyboard: keys } = page;
  await page.getByRole("link", { name: /Agents.*[1-9]/ }).waitFor();
  await keys.press("Control+2");
  await keys.press("n");
  await page.getByRole("dialog", { name: "Start a task" }).waitFor();
  await keys.press("Shift+Tab");
  await keys.type(agent.name);
  await keys.press("Tab");
  await keys.type("By keyboard alone, without r or x doing anything");
  await keys.press("Control+Enter");
  await page.getByRole("heading", { name: /By keyboard alone/ }).waitFor();
  check("a task is started with keys, and letters are letters in a field", true);
  await page.getByRole("textbox", { name: "Your answer" }).waitFor();
  await keys.press("r");
  await keys.type("Yes");
  await keys.press("Control+Enter");
  await waitUntil("answer", () => agent.received.some((one) => one.parts[0]?.text === "Yes"));
  check("it is answered with keys", true);
  await keys.press("Escape");
  await keys.press("]");
  const chosen = () => page.getByRole("tab", { selected: true }).textContent();
  check("brackets change the tab", (await chosen()) === "Conversation", await chosen());
  const place = () => page.evaluate(() => location.hash);
  const before = await place();
  await keys.press("j");
  await waitUntil("another choice", async () => (await place()) !== before);
  await keys.press("k");
  await waitUntil("the first choice", async () => (await place()) === before);
  check("j and k move the choice", true);
  await keys.press("/");
  await keys.type("nothing-like-this");
  await page.getByText("No task matches").waitFor();
  await keys.press("Escape");
  await keys.press("Escape");
  check("the search says when nothing fits", true);
  await page.evaluate(() => document.activeElement?.blur());
  await keys.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await keys.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await keys.press("Control+k");
  await keys.type("agents");
  await keys.press("Enter");
  await page.getByRole("listbox", { name: "Agents" }).waitFor();
  check("the palette runs a command", true);
  check("nothing went wrong in the page", page.problems.length === 0, page.problems);
  await page.context().close();
}

async function agents(browser, engine, agent) {
  const page = await open(browser, engine);
  await page.getByRole("link", { name: "Agents" }).click();
  await page.getByRole("button", { name: "Add agent…" }).click();
  const address = page.getByLabel("Address, or a curl line");
  await address.fill(`curl -s ${agent.url} -H 'Authorization: Bearer planted-s3cret-0451'`);
  const left = await address.inputValue();
  check("a pasted token leaves the visible field", !left.includes("planted"), left);
  check("the token is read into the credential", (await page.getByLabel("Token").inputValue()) === "planted-s3cret-0451");
  await page.getByLabel("Name", { exact: true }).fill("pasted");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { name: "pasted" }).waitFor();
  check("an agent is added by a curl line", await page.getByText("a bearer token, in the keyring").isVisible());
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("It answers.").waitFor();
  await page.getByRole("combobox", { name: "Dialect" }).selectOption("1.0");
  await waitUntil("pin", async () => (await engine.call("GET", "/agents/pasted")).pinnedDialect === "1.0");
  check("it is tested and its dialect pinned", true);
  await page.getByRole("button", { name: "Remove…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByRole("option", { name: /pasted/ }).waitFor({ state: "detached" });
  check("it is removed after a question", true);
  check("no secret is in the page", !(await page.content()).includes("planted-s3cret"));
  await page.context().close();
}

const HOSTILE = `<img src="http://127.0.0.1:9/pixel" onerror="window.pwned = 1">
<script>window.pwned = 1</script>

[click](javascript:window.pwned=1) [file](file:///etc/passwd) [out](http://127.0.0.1:9/out) ![pic](http://127.0.0.1:9/p.png)

</div></main><h1>Escaped</h1><style>body{display:none}</style>`;

async function hostile(browser, engine, agent) {
  const long = Array.from({ length: 6000 }, (_, at) => `Line ${at} of a long answer, with some more words.`).join("\n");
  agent.begin = (asked) => ({
    state: "COMPLETED",
    text: HOSTILE,
    artifacts: [
      { artifactId: "a", name: HOSTILE.slice(0, 80), parts: [{ text: asked.startsWith("Long") ? long : HOSTILE }] },
    ],
  });
  const page = await open(browser, engine);
  const task = await engine.send(HOSTILE, agent.name);
  await show(page, task);
  await page.getByText("window.pwned", { exact: false }).first().waitFor();
  for (const tab of ["Result", "Timeline", "Conversation", "Raw"]) {
    await page.getByRole("tab", { name: tab }).click();
    await page.waitForTimeout(150);
  }
  check("agent text runs nothing", (await page.evaluate(() => window.pwned)) === undefined);
  check("agent text makes no element of its own", (await page.locator("main img, main script, main style").count()) === 0);
  const foreign = page.asked.filter((url) => !url.startsWith(engine.gateway));
  check("agent text fetches nothing", foreign.length === 0, foreign);
  await page.getByRole("tab", { name: "Result" }).click();
  const out = page.getByRole("button", { name: /out.*127\.0\.0\.1/ }).first();
  await out.click();
  const dialog = page.getByRole("dialog");
  check("a link shows its whole address before it opens", await dialog.getByText("http://127.0.0.1:9/out").isVisible());
  await dialog.getByRole("button", { name: "Stay" }).click();
  check("script and file links are no links", (await page.getByRole("button", { name: /^(click|file)/ }).count()) === 0);

  const big = await engine.send("Long answer, please", agent.name);
  await show(page, big);
  const started = performance.now();
  await page.getByText("Line 0 of a long answer").first().waitFor();
  const took = performance.now() - started;
  check("300 kB of answer are there within two seconds", took < 2000, took);
  const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check("nothing escapes its box", width[0] <= width[1], width);
  check("nothing went wrong in the page", page.problems.length === 0, page.problems);
  await page.context().close();
}

async function manyTasks(browser, engine) {
  const page = await open(browser, engine);
  await page.getByRole("listbox").waitFor();
  await page.getByRole("link", { name: "Tasks" }).click();
  const list = page.getByRole("listbox", { name: "Tasks", exact: true });
  await list.waitFor();
  const size = Number(await page.locator(ROWS).first().getAttribute("aria-setsize"));
  check("all 500 tasks are in the list", size >= 500, size);
  const drawn = await page.locator(ROWS).count();
  check("only those in sight are drawn", drawn < 60, drawn);
  await list.focus();
  await page.keyboard.press("End");
  await waitUntil("choice of the last row", async () => (await page.locator(CHOSEN).getAttribute("aria-posinset")) === String(size));
  const last = await page.locator(CHOSEN).getAttribute("aria-posinset");
  check("the last one is reached with a key", Number(last) === size, last);
  const frames = await page.evaluate(async () => {
    const box = document.querySelector("[role=listbox]");
    const frames = [];
    let before = performance.now();
    for (let top = 0; top < box.scrollHeight; top += 300) {
      box.scrollTop = top;
      await new Promise((next) => requestAnimationFrame(next));
      frames.push(performance.now() - before);
      before = performance.now();
    }
    return frames.sort((one, other) => one - other);
  });
  const slow = frames[Math.floor(frames.length * 0.95)];
  check("nineteen of twenty frames of a quick scroll take under a tenth of a second", slow < 100, frames.slice(-5));
  await page.context().close();
}

async function looks(browser, engine, story) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(browser, engine, { colorScheme });
    await page.getByRole("listbox").waitFor();
    await show(page, story.tasks.get("Migrate billing to the new ledger"));
    await page.getByRole("textbox", { name: "Your answer" }).waitFor();
    const found = [];
    const look = async (what) => found.push(...(await breaches(page)).map((breach) => `${what}: ${breach}`));
    for (const tab of ["Timeline", "Conversation", "Raw"]) {
      await page.getByRole("tab", { name: tab }).click();
      await look(tab);
    }
    await show(page, story.tasks.get("Compare recall of the three candidate indexes"));
    await page.getByRole("heading", { name: "Recall under deletes" }).waitFor();
    await look("result");
    await page.getByRole("link", { name: "Needs you" }).click();
    await look("needs you");
    await page.keyboard.press("Control+k");
    await look("palette");
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Agents" }).click();
    await look("agents");
    await page.getByRole("button", { name: "Add agent…" }).click();
    await look("add agent");
    await page.keyboard.press("Escape");
    for (const place of PLACES) {
      await page.evaluate((to) => (location.hash = `#/${to}`), place);
      await page.locator("main h1, main h2").first().waitFor({ state: "attached" });
      await look(place);
    }
    await show(page, story.tasks.get("Migrate billing to the new ledger"));
    await page.getByRole("textbox", { name: "Your answer" }).waitFor();
    await page.evaluate(() => document.activeElement?.blur());
    for (const key of ["?", "n", "s", "x"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      await look(`dialog of ${key}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    for (const words of ["watch a task", "new client key", "add my agent", "export"]) {
      await page.keyboard.press("Control+k");
      await page.keyboard.type(words);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog", { name: "Commands" }).waitFor({ state: "detached" });
      await page.getByRole("dialog").waitFor();
      await look(`dialog to ${words}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    check(`${colorScheme}: no breach of the accessibility rules`, found.length === 0, found);
    await page.getByRole("link", { name: "Tasks" }).click();
    await sizes(page, colorScheme, story);
    await page.context().close();
  }
}

/** From a small window, or a large one at 200 %, to four times a common one. */
const SIZES = [[640, 400], [720, 480], [1024, 640], [1600, 1000], [3840, 2160]];
const PLACES = ["tasks", "needs-you", "inbox", "gateway", "agents", "health", "settings/general", "settings/notices", "settings/keys", "settings/appearance"];

/** The page itself never scrolls, and nothing that can be pressed reaches out of it. */
async function sizes(page, colorScheme, story) {
  await show(page, story.tasks.get(TITLES.find((title) => title.length > 150)));
  const out = [];
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    for (const place of PLACES) {
      if (place !== "tasks") await page.evaluate((to) => (location.hash = `#/${to}`), place);
      await page.waitForTimeout(120);
      const found = await page.evaluate(() => {
        const root = document.documentElement;
        const over = [root.scrollWidth - innerWidth, root.scrollHeight - innerHeight];
        const scrolls = (element) => {
          for (let at = element.parentElement; at; at = at.parentElement) {
            if (/auto|scroll/.test(getComputedStyle(at).overflowX) && at.scrollWidth > at.clientWidth) return true;
          }
          return false;
        };
        const cut = [...document.querySelectorAll("button, a, input, select, textarea")]
          .filter((one) => {
            const box = one.getBoundingClientRect();
            return box.width > 1 && box.height > 1 && (box.right > innerWidth + 0.5 || box.left < -0.5) && !scrolls(one);
          })
          .map((one) => (one.textContent || one.getAttribute("aria-label") || one.tagName).trim().slice(0, 30));
        return over.some((by) => by > 0) || cut.length > 0 ? { over, cut } : null;
      });
      if (found) out.push({ width, height, place, ...found });
    }
    await show(page, story.tasks.get(TITLES.find((title) => title.length > 150)));
  }
  check(`${colorScheme}: from 640 × 400 to 3840 × 2160 nothing scrolls away and nothing is cut`, out.length === 0, out);
}

async function engineGone(browser, engine) {
  const page = await open(browser, engine);
  // What waits is shown first; only then the rows stay what they are.
  await page.getByRole("listbox", { name: "Tasks that need you" }).waitFor();
  const rows = await page.locator(ROWS).count();
  await engine.halt();
  await page.getByText(/The engine does not answer/).waitFor();
  check("without an engine the last known rows stay", (await page.locator(ROWS).count()) === rows && rows > 0, rows);
  await engine.run();
  await page.getByText(/not signed in/).waitFor({ timeout: 30_000 });
  check("an engine that started anew asks for a sign-in", true);
  await page.context().close();
}

const alarm = setTimeout(() => {
  console.log(`FAILED  not done within ${LIMIT_MS / 1000} s`);
  process.exit(1);
}, LIMIT_MS);
const fresh = await Engine.start();
const desk = await Engine.start();
const browser = await launch();
const agent = await Agent.start("tester");
let story;
const stories = {
  "first run": () => firstRun(browser, fresh),
  actions: () => actions(browser, fresh, agent),
  keyboard: () => keyboard(browser, fresh, agent),
  agents: () => agents(browser, fresh, agent),
  inbox: () => inbox(browser, breaches),
  gateway: () => gateway(browser, breaches),
  finding: () => finding(browser, breaches),
  keeping: () => keeping(browser, breaches),
  settings: () => settings(browser, breaches),
  health: () => health(browser, breaches),
  "hostile text": () => hostile(browser, fresh, agent),
  "agent output": () => agentOutput(browser, fresh),
  ...Object.fromEntries(PEERS.map((peer) => [`peer ${peer.name}`, () => withPeer(browser, peer)])),
  "foreign page": () => foreignPage(),
  "500 tasks": () => manyTasks(browser, desk),
  looks: () => looks(browser, desk, story),
  "engine gone": () => engineGone(browser, desk),
};
try {
  await fresh.call("POST", "/agents", { name: agent.name, url: agent.url });
  story = await play(desk, { extra: 490 });
  for (const [name, run] of Object.entries(stories)) {
    if (process.argv[2] && !name.includes(process.argv[2])) continue;
    console.log(`-- ${name}`);
    const began = performance.now();
    try {
      await run();
    } catch (error) {
      check(name, false, error.message.split("\n").slice(0, 4).join(" "));
    }
    console.log(`   ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
} finally {
  await browser.close();
  await Promise.all([fresh.stop(), desk.stop(), agent.stop()]);
  await Promise.all([...(story?.agents.values() ?? [])].map((one) => one.stop()));
}
clearTimeout(alarm);
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
