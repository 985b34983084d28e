// The inbox in the page: an agent that calls back truly, falsely, too early, twice, and somebody who only pretends.
import { Agent } from "./agent.mjs";
import { open } from "./browser.mjs";
import { check, waitUntil } from "./checks.mjs";
import { Engine } from "./engine.mjs";

const LIE = '<img src="http://127.0.0.1:9/pixel" onerror="window.pwned = 1">';

/** An agent whose tasks are registered by themselves. */
export async function pusher(engine, name = "pusher") {
  const agent = await Agent.start(name);
  agent.card = { capabilities: { streaming: true, pushNotifications: true } };
  await engine.call("POST", "/agents", { name, url: agent.url });
  return agent;
}

/** Sends a task and waits until its agent may call back. */
export async function registered(engine, agent, text) {
  const task = await engine.send(text, agent.name);
  const id = task.slice(task.indexOf("/") + 1);
  await waitUntil("registration at the agent", () => agent.configs.has(id));
  return { task, id };
}

export const says = (id, state, more = {}) => ({ statusUpdate: { taskId: id, status: { state, ...more } } });

/** Rows of the list; the filter has options too. */
const callbacks = (page, name) => page.locator("[role=listbox]").getByRole("option", { name });

const verdicts = async (engine) => (await engine.call("GET", "/inbox")).items;

/** Waits until as many rows have that verdict. */
export const judged = (engine, verdict, count) =>
  waitUntil(`${verdict} callback`, async () => {
    const items = await verdicts(engine);
    return items.filter((item) => item.verdict === verdict).length === count;
  });

/** An inbox with something of everything, for pictures. The agent is the caller's to stop. */
export async function playCallbacks(engine) {
  const agent = await pusher(engine, "release-train");
  agent.begin = () => ({ state: "WORKING", text: "Building" });
  const words = (text) => ({ message: { messageId: `m-${text.length}`, role: "ROLE_AGENT", parts: [{ text }] } });
  const done = await registered(engine, agent, "Cut release 4.2 and publish the packages");
  await agent.callBack(done.id, says(done.id, "TASK_STATE_WORKING", words("Building")));
  await judged(engine, "confirmed", 1);
  agent.update(done.id, { state: "WORKING", text: "Signing the packages" });
  await agent.callBack(done.id, says(done.id, "TASK_STATE_SUBMITTED"));
  await judged(engine, "behind", 1);
  const lied = await registered(engine, agent, "Roll the staging clusters back to the last good build");
  await agent.callBack(lied.id, says("another-task", "TASK_STATE_COMPLETED"));
  agent.update(done.id, {
    state: "COMPLETED",
    text: "Released.",
    artifacts: [{ artifactId: "notes.md", name: "notes.md", parts: [{ text: "# 4.2\n\nFaster, and it asks less." }] }],
  });
  await agent.callBack(done.id, { task: agent.tasks.get(done.id) });
  await judged(engine, "confirmed", 2);
  await agent.callBack(done.id, says(done.id, "TASK_STATE_COMPLETED", { timestamp: "2026-01-05T10:00:00Z" }));
  await judged(engine, "confirmed", 3);
  await agent.callBack(done.id, says(done.id, "TASK_STATE_COMPLETED", { timestamp: "2026-01-05T10:00:01Z" }));
  await judged(engine, "duplicate", 1);
  await agent.callBack(lied.id, says(lied.id, "TASK_STATE_WORKING"), "not-the-token");
  const lie = says(lied.id, "TASK_STATE_COMPLETED", words("All clusters run build 4711 again"));
  await agent.callBack(lied.id, lie);
  await judged(engine, "ahead", 1);
  await judged(engine, "rejected", 1);
  return agent;
}

export async function inbox(browser, breaches) {
  const engine = await Engine.start();
  const agent = await pusher(engine);
  try {
    const page = await open(browser, engine);
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("heading", { name: "No callbacks yet" }).waitFor();
    await page.getByRole("button", { name: "Send myself one" }).click();
    await page.getByText(/Test callbacks of both dialects were taken and kept/).waitFor();
    check("a test callback of each dialect is taken and kept", true);

    agent.begin = () => ({ state: "WORKING", text: "on it" });
    const { task, id } = await registered(engine, agent, "Build the release");
    check("true news is taken", (await agent.callBack(id, says(id, "TASK_STATE_WORKING"))) === 200);
    await judged(engine, "confirmed", 1);
    await callbacks(page, /confirmed · Build the release/).waitFor();
    check("a true callback appears with its task", true);

    const lie = says(id, "TASK_STATE_COMPLETED", {
      message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: LIE }] },
    });
    await agent.callBack(id, lie);
    await judged(engine, "ahead", 1);
    const row = callbacks(page, /ahead · Build the release/);
    await row.click();
    await page.getByRole("rowheader", { name: "/status/state" }).waitFor();
    const facts = await page.locator(".facts").innerText();
    check("a lie is shown beside what the agent says", /finished/.test(facts) && /working/.test(facts), facts);
    const marked = await page.locator("figure .differs").count();
    check("the lines that differ are marked in both documents", marked >= 2, marked);
    check("its text is text", (await page.evaluate(() => window.pwned)) === undefined);
    check("the task stays what its agent says", (await engine.call("GET", `/tasks/${task}`)).state === "working");
    const rail = await page.getByRole("link", { name: /Inbox/ }).textContent();
    check("the rail counts what is to be looked at", rail.includes("1"), rail);

    await page.getByRole("button", { name: "Replay without effect" }).click();
    await page.getByText(/Held against the task as it is now it would be/).waitFor();
    check("a replay says what it would be now", true);
    await page.getByRole("button", { name: "Reconcile again" }).click();
    await page.getByRole("tab", { name: "Verification" }).click();
    await page.getByText("sent, and right", { exact: true }).waitFor();
    check("the proofs are told apart", await page.getByText("not sent, though it was registered").isVisible());
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("]");
    await page.getByRole("button", { name: "Octets" }).click();
    await page.getByText(/^000000 {2}7b 22/).waitFor();
    check("the body is shown octet by octet", true);
    await page.getByRole("button", { name: "Copy as curl" }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const { token, url } = agent.configs.get(id);
    check("the curl line has the body", copied.includes("curl -X POST") && copied.includes(id), copied);
    const shown = `${copied}${await page.content()}`;
    check("no secret and no whole address is shown", !shown.includes(token) && !shown.includes(url));

    check("a forged proof is refused", (await agent.callBack(id, lie, "forged")) === 401);
    await callbacks(page, /rejected · Build/).waitFor();
    check("and stands in the inbox as refused", true);
    check("another task's id is refused", (await agent.callBack(id, says("other", "TASK_STATE_COMPLETED"))) === 422);

    for (let at = 0; at < 3; at += 1) await agent.callBack(id, lie);
    await callbacks(page, /ahead ×4/).waitFor();
    check("repeats are counted in one row", true);

    agent.tasks.get(id).status.state = "TASK_STATE_COMPLETED";
    await agent.callBack(id, says(id, "TASK_STATE_COMPLETED"));
    await waitUntil("end", async () => (await engine.call("GET", `/tasks/${task}`)).state === "completed");
    await page.getByRole("button", { name: "Open the task" }).click();
    await page.getByRole("tab", { name: "Callbacks" }).click();
    await page.getByText(/registered|over/).first().waitFor();
    const received = await page.locator("ol .entry").count();
    check("a task's tab lists what came for it", received >= 3, received);
    await page.locator("ol .entry").first().click();
    await page.getByRole("tab", { name: "Verification" }).waitFor();
    check("and leads to the inbox", page.url().includes("#/inbox/"), page.url());
    await page.getByRole("combobox", { name: "Verdict" }).selectOption("rejected");
    await waitUntil("only what was rejected", async () => (await callbacks(page, /./).count()) === 1);
    check("all that is kept is filtered by verdict", (await callbacks(page, /rejected · Build/).count()) === 1);
    await page.getByRole("combobox", { name: "Verdict" }).selectOption("");
    await page.getByRole("combobox", { name: "Search the inbox" }).fill("verdict:unmatched release");
    await waitUntil("only what is unmatched", async () => (await callbacks(page, /./).count()) === 1);
    check("and searched by words and keys", (await callbacks(page, /unmatched/).count()) === 1);
    await page.getByRole("combobox", { name: "Search the inbox" }).fill("via:stream");
    await page.locator("main .refused").getByText(/via/).waitFor();
    check("a key that the inbox does not know is answered with a sentence", true);
    await page.getByRole("combobox", { name: "Search the inbox" }).fill("");
    check("no breach of the accessibility rules", ...none(await breaches(page)));

    await page.getByRole("link", { name: "Agents" }).click();
    await page.getByRole("option", { name: new RegExp(agent.name) }).click();
    await page.getByText("Wrong proof").waitFor();
    check("the agent's report card is shown", true);
    // The refused query is told in the console too.
    const problems = page.problems.filter((one) => !/status of 400/.test(one));
    check("nothing went wrong in the page", problems.length === 0, problems);
    const foreign = page.asked.filter((address) => !address.startsWith(engine.gateway));
    check("nothing but the engine was asked", foreign.length === 0, foreign);
    await page.context().close();
  } finally {
    await Promise.all([engine.stop(), agent.stop()]);
  }
}

const none = (found) => [found.length === 0, found];
