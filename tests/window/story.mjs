#!/usr/bin/env node
// What a user does with the real window, by clicks and keys alone: from the first start through a question, a lost
// connection and the end; a task called off, one confirmed by hand; and the buttons of notices.
//
//   node tests/window/story.mjs DESKTOP
//
//   TASKBELL_SCREENSHOTS   a folder that keeps the pictures
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { keyring, noticeService } from "./daemons.mjs";
import { check, desktop, openWindow, picture, run, scratch, test, waitUntil } from "./support.mjs";

const LIMIT_MS = 150_000;
/** The demo works a second a step. */
const WORKS_MS = 15_000;
const [CONTROL, ENTER] = ["\uE009", "\uE007"];

const button = (words, within = "") => `xpath:${within}//button[starts-with(normalize-space(.), "${words}")]`;

/** The page as its user sees it; `api` only looks. */
function userOf(window) {
  const text = (selector) =>
    window.execute("return document.querySelector(arguments[0])?.innerText.trim() ?? null", selector);
  return {
    ...window,
    text,
    page: () => text("body"),
    /** The task whose pane is open, as AGENT/ID. */
    async task() {
      return (await text('button[title="Copy the task\'s id"]'))?.replace(" / ", "/") ?? null;
    },
    async api(path) {
      const { status, body } = await window.invoke("api_request", { method: "GET", path: `/api/v1${path}`, body: null });
      if (status !== 200) throw new Error(`GET ${path}: ${status}`);
      return body;
    },
    /** Away from all tasks: what is on the screen already is told by no notice. */
    async lookAway() {
      await window.keys(CONTROL, "5");
      await waitUntil("agents", async () => (await text("h1")) === "Agents");
    },
    /** A task for the demo agent, through the dialog. */
    async startTask(words) {
      await window.keys("n");
      await waitUntil("dialog", () => text("dialog[open] textarea").then((now) => now !== null));
      await window.type("dialog[open] textarea", words);
      const before = await this.task();
      await window.keys(CONTROL, ENTER);
      return await waitUntil("started task", async () => {
        const now = await this.task();
        return now !== null && now !== before && (await text("dialog[open]")) === null ? now : undefined;
      });
    },
  };
}

const noticesOf = async (user, task) => (await user.api("/notices")).items.filter((one) => one.task === task);

/** A notice that is not shown says what the engine did with it instead. */
async function noticeShown(user, desk, task) {
  await waitUntil("notice", () => desk.shown() === 1, WORKS_MS).catch(async (error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await noticesOf(user, task))}`);
  });
}

/** First start, the demo, its question answered, its connection cut, its end. */
async function firstRun(user, desk, env) {
  await waitUntil("first page", async () => (await user.page()).includes("Try the demo"));
  await waitUntil("word on the keyring", async () => (await user.page()).includes("The keyring works"));
  check("the first page offers the demo and says that the keyring works", true);
  await user.click(button("Try the demo"));
  const task = await waitUntil("pane of the demo's task", () => user.task());
  const page = await user.page();
  check("the demo's task appears and is in front", page.includes("Try Taskbell"), page);
  await user.lookAway();

  await noticeShown(user, desk, task);
  const asked = await noticesOf(user, task);
  check("the question is one notice", asked.length === 1 && asked[0].kind === "waiting", asked);
  desk.press("open");
  await waitUntil("task of the notice", async () => (await user.task()) === task);
  check("its button Open shows that task in the window", true);

  await waitUntil("reply field", () => user.text("textarea").then((now) => now !== null));
  await user.type("textarea", "go on, please");
  await user.keys(CONTROL, ENTER);
  await waitUntil("answered question", async () => !(await user.api(`/tasks/${task}`)).needsYou);
  await user.lookAway();
  const { timeline } = await user.api(`/tasks/${task}`);
  check("the answer was typed and sent with Ctrl+Enter", JSON.stringify(timeline).includes("go on, please"), timeline);

  const ended = async () => (await user.api(`/tasks/${task}`)).state === "completed";
  await waitUntil("end of the task", ended, WORKS_MS);
  check("the task ended", true);
  // The question's bubble may still stand there for a moment.
  const endTold = async () => (await noticesOf(user, task)).some((one) => one.kind === "finished" && one.outcome);
  await waitUntil("notice of the end", endTold, WORKS_MS);
  await noticeShown(user, desk, task);
  desk.press("open");
  await waitUntil("task of the notice", async () => (await user.task()) === task);
  check("the notice of the end leads to it as well", true);
  await user.click('xpath://*[@role="tab"][contains(., "Timeline")]');
  const gap = await waitUntil("drawn gap", () => user.text("#task-panel .gap .gap"));
  check("the cut is drawn in the timeline", /^disconnected .+ text in between is not available$/.test(gap), gap);
  const id = run("xdotool", ["search", "--onlyvisible", "--name", "^Taskbell$"], env).split("\n")[0];
  check("and the window is painted", picture(env, id, "story").colours > 32);
  await waitUntil("empty screen", () => desk.shown() === 0);
  const told = desk.history();
  const rows = await noticesOf(user, task);
  check(
    "two notices in all: one of the question, one of the end",
    told.length === 2 && rows.map((one) => one.kind).join() === "finished,waiting",
    { told, rows },
  );
  return task;
}

async function reconciled(user, task) {
  const confirmed = async () => (await user.api(`/tasks/${task}`)).lastConfirmed.at;
  const before = await confirmed();
  await user.click(button("Reconcile"));
  await waitUntil("newer confirmation", async () => (await confirmed()) > before);
  check("the button Reconcile reads the task again", true);
}

async function canceled(user, desk) {
  const before = desk.history().length;
  const task = await user.startTask("steps=100 interval=1");
  await user.click(button("Cancel task"));
  await waitUntil("confirmation", async () => (await user.text("dialog[open] h2")) === "Cancel this task?");
  const state = (await user.api(`/tasks/${task}`)).state;
  check("nothing is canceled before it is confirmed", state !== "canceled", state);
  await user.click("dialog[open] button[type=submit]");
  await waitUntil("canceled task", async () => (await user.api(`/tasks/${task}`)).state === "canceled");
  await waitUntil("its word on the page", async () => /canceled/i.test(await user.text("dl")));
  check("a task is canceled by its button and the confirmation", true);
  await user.lookAway();
  const [rows, shown] = [await noticesOf(user, task), desk.shown()];
  const quiet = rows.every((one) => one.outcome !== "shown") && shown === 0 && desk.history().length === before;
  check("the user's own cancellation is no notice", quiet, rows);
}

async function snoozed(user, desk) {
  const task = await user.startTask("steps=4 interval=1 ask=2");
  await user.lookAway();
  await noticeShown(user, desk, task);
  const before = Date.now();
  desk.press("snooze");
  const row = await waitUntil("snoozed notice", async () => {
    const [newest] = await noticesOf(user, task);
    return newest?.snoozedUntil && newest.outcome === null ? newest : undefined;
  });
  const minutes = (Date.parse(row.snoozedUntil) - before) / 60_000;
  check("the notice's button Snooze puts it off for ten minutes", minutes > 9.5 && minutes < 10.5, row);
  await waitUntil("empty screen", () => desk.shown() === 0);
  check("and the window stays where it was", (await user.text("h1")) === "Agents");
}

await test(LIMIT_MS, async () => {
  const env = await desktop();
  await keyring(env);
  const desk = await noticeService(env);
  const data = join(scratch, "story");
  mkdirSync(data, { mode: 0o700 });
  const user = userOf(await openWindow(env, ["--data-dir", data, "--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0", "--demo"]));
  const task = await firstRun(user, desk, env);
  await reconciled(user, task);
  await canceled(user, desk);
  await snoozed(user, desk);
  await user.close();
});
