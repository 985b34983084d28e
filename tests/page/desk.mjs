// Finding, keeping and putting off tasks; settings; health. With the mouse where it is usual, with keys alone where not.
import { readFileSync } from "node:fs";
import { Agent } from "./agent.mjs";
import { open } from "./browser.mjs";
import { check, show, waitUntil } from "./checks.mjs";
import { Engine } from "./engine.mjs";

const rows = (page, name) => page.locator("main [role=listbox]").getByRole("option", { name });
const none = (found) => [found.length === 0, found];

/** The page of an engine with one agent and a few tasks of it. */
async function withTasks(browser, play) {
  const engine = await Engine.start();
  const agent = await Agent.start("scribe");
  try {
    await engine.call("POST", "/agents", { name: agent.name, url: agent.url });
    const answer = (text) => [{ artifactId: "a.md", name: "a.md", parts: [{ text }] }];
    agent.begin = () => ({ state: "COMPLETED", text: "Done.", artifacts: answer("The ledger is off by a **farthing**.") });
    const ended = await engine.send("Check the accounts", agent.name);
    agent.begin = () => ({ state: "INPUT_REQUIRED", text: "Which quarter?" });
    const waits = await engine.send("Close the quarter", agent.name);
    agent.begin = () => ({ state: "WORKING", text: "Counting" });
    const runs = await engine.send("Count the stock", agent.name);
    await waitUntil("waiting task", async () => (await engine.call("GET", `/tasks/${waits}`)).needsYou);
    await waitUntil("settled task", async () => (await engine.call("GET", `/tasks/${ended}`)).settled);
    const page = await open(browser, engine);
    await play(page, engine, agent, { ended, waits, runs });
    check("nothing went wrong in the page", ...none(page.problems.filter((one) => !/status of 40[04]|CONNECTION_REFUSED/.test(one))));
    await page.context().close();
  } finally {
    await Promise.all([engine.stop(), agent.stop()]);
  }
}

export async function finding(browser, breaches) {
  await withTasks(browser, async (page, engine) => {
    const { keyboard: keys } = page;
    await page.getByRole("link", { name: "Tasks" }).click();
    await rows(page, /Count the stock/).waitFor();
    await keys.press("/");
    const field = page.getByRole("combobox", { name: "Search tasks" });
    await keys.type("farthing");
    await rows(page, /Check the accounts.*farthing/).waitFor();
    check("a word of an answer finds its task, with the place", (await page.locator("main mark").innerText()) === "farthing");
    await waitUntil("only that one", async () => (await rows(page, /./).count()) === 1);
    await keys.press("Escape");
    await rows(page, /Count the stock/).waitFor();
    check("without words all are there again", true);
    await keys.type("st");
    await keys.press("ArrowDown");
    await keys.press("Enter");
    check("a key is completed with the keyboard", (await field.inputValue()) === "state:", await field.inputValue());
    await keys.type("inp");
    check("no breach while something is offered", ...none(await breaches(page)));
    await keys.press("Tab");
    check("and its value", (await field.inputValue()) === "state:input-required ", await field.inputValue());
    await waitUntil("the one that waits", async () => (await rows(page, /Close the quarter/).count()) === 1 && (await rows(page, /./).count()) === 1);
    check("and it holds", true);
    await field.fill("colour:red");
    await page.getByText(/colour/i).first().waitFor();
    const said = await page.locator("main .refused").innerText();
    check("an unknown key is answered with a sentence, and the rows stay", said.length > 20 && (await rows(page, /./).count()) === 1, said);
    check("no breach while a query is refused", ...none(await breaches(page)));

    await field.fill("is:open count");
    await rows(page, /Count the stock/).waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Counting");
    await keys.press("Enter");
    await page.getByRole("combobox", { name: "Saved views" }).locator("option", { hasText: "Counting" }).waitFor({ state: "attached" });
    await field.fill("");
    const views = page.getByRole("combobox", { name: "Saved views" });
    await views.selectOption("Waiting");
    await waitUntil("the waiting one", async () => (await rows(page, /./).count()) === 1 && (await rows(page, /Close/).count()) === 1);
    check("a view that is built in shows what waits", (await field.inputValue()) === "is:waiting", await field.inputValue());
    await views.selectOption("Counting");
    await rows(page, /Count the stock/).waitFor();
    check("a saved search comes back", (await field.inputValue()) === "is:open count");
    await page.getByRole("button", { name: "Forget", exact: true }).click();
    await waitUntil("no view", async () => !(await engine.call("GET", "/views?screen=tasks")).items.some((one) => one.name === "Counting"));
    await page.getByRole("button", { name: "Undo" }).click();
    await waitUntil("the view", async () => (await engine.call("GET", "/views?screen=tasks")).items.some((one) => one.name === "Counting"));
    check("it is forgotten, and that can be undone", true);
  });
}

export async function keeping(browser, breaches) {
  await withTasks(browser, async (page, engine, agent, { waits, runs }) => {
    const { keyboard: keys } = page;
    const task = (ref) => engine.call("GET", `/tasks/${ref}`);
    await show(page, runs);
    await page.getByRole("heading", { name: "Count the stock" }).waitFor();
    await keys.press("p");
    await waitUntil("pin", async () => (await task(runs)).pinned);
    await keys.press("m");
    await waitUntil("mute", async () => (await task(runs)).muted);
    await rows(page, /pinned, .*muted, .*Count|Count.*pinned, .*muted/).waitFor();
    check("p pins and m mutes, and the row says both", true);
    await page.getByRole("button", { name: /^Unmute/ }).click();
    await waitUntil("unmute", async () => !(await task(runs)).muted);
    await page.getByRole("button", { name: "More…" }).click();
    await keys.type("note");
    await keys.press("Enter");
    const note = page.getByRole("textbox", { name: "Your note" });
    await note.waitFor();
    await keys.type("Ask Ana before the end of the month");
    await keys.press("Control+Enter");
    await note.waitFor({ state: "detached" });
    check("a note is kept", (await task(runs)).note === "Ask Ana before the end of the month", (await task(runs)).note);
    check("the agent is not sent it", !JSON.stringify(agent.received).includes("Ask Ana"));
    await page.getByRole("combobox", { name: "Search tasks" }).fill("ana month");
    await rows(page, /Count the stock.*Ana/).waitFor();
    check("and found by its words", true);
    await page.getByRole("combobox", { name: "Search tasks" }).fill("");
    await page.evaluate(() => document.activeElement?.blur());

    await keys.press("y");
    check("y copies the id", (await page.evaluate(() => navigator.clipboard.readText())) === runs);
    await keys.press("Shift+y");
    const line = await waitUntil("curl line", async () => {
      const text = await page.evaluate(() => navigator.clipboard.readText());
      return text.startsWith("curl") && text;
    });
    check("Shift+y copies the read as curl", line.includes("GetTask") && line.includes(agent.url), line);

    await page.getByRole("button", { name: "More…" }).click();
    await keys.type("export");
    await keys.press("Enter");
    await page.getByRole("dialog", { name: "Export the task" }).waitFor();
    check("no breach in what can be exported", ...none(await breaches(page)));
    const saved = page.waitForEvent("download");
    await keys.press("1");
    const file = await saved;
    const document = readFileSync(await file.path(), "utf8");
    check("a task is exported as a document", /\.md$/.test(file.suggestedFilename()) && document.includes("Count the stock"), document);
    await page.evaluate(() => document.activeElement?.blur());

    await keys.press("e");
    await rows(page, /Count the stock/).waitFor({ state: "detached" });
    await page.getByRole("combobox", { name: "Saved views" }).selectOption("Archived");
    await rows(page, /archived, .*Count the stock|Count the stock.*archived/).click();
    await page.getByRole("button", { name: /^Take out of the archive/ }).click();
    await waitUntil("out of the archive", async () => !(await task(runs)).archived);
    check("e archives; the archive is a view, and leads out again", true);
    await page.getByRole("combobox", { name: "Search tasks" }).fill("");

    await keys.press("Control+1");
    await page.getByRole("heading", { name: "Close the quarter" }).waitFor();
    check("what needs you shows the question, whatever was chosen before", true);
    await page.evaluate(() => document.activeElement?.blur());
    await keys.press("s");
    await page.getByRole("dialog", { name: "Snooze until" }).waitFor();
    check("no breach in the times to choose from", ...none(await breaches(page)));
    await keys.press("ArrowDown");
    await keys.press("Enter");
    await waitUntil("snooze", async () => (await task(waits)).snoozedUntil);
    const left = Date.parse((await task(waits)).snoozedUntil) - Date.now();
    check("s puts a question off, to the time that was chosen", left > 55 * 60_000 && left <= 60 * 60_000, left);
    await page.getByText("Nothing waits for you").waitFor();
    await show(page, waits);
    await page.getByRole("button", { name: "Wake now" }).click();
    await waitUntil("awake", async () => (await task(waits)).needsYou);
    check("it can be woken", true);
    check("no breach in the pane", ...none(await breaches(page)));
  });
}

export async function settings(browser, breaches) {
  await withTasks(browser, async (page, engine, agent) => {
    const { keyboard: keys } = page;
    const value = async (key) => (await engine.call("GET", `/settings/${key}`)).value;
    await page.getByRole("link", { name: "Tasks" }).click();
    await rows(page, /Count the stock/).waitFor();
    await keys.press("Control+,");
    const general = page.getByRole("region", { name: "General" });
    const field = general.getByLabel("Poll at least every");
    await field.fill("20");
    await field.press("Enter");
    await general.getByText("✓ Saved").waitFor();
    check("a setting is saved at once, and says so", (await value("follow.poll_max")) === "20");
    await field.fill("nonsense");
    await field.press("Enter");
    await general.getByRole("alert").waitFor();
    check("what is not taken is told beside it, and nothing changes", (await value("follow.poll_max")) === "20");
    await field.press("Escape");
    check("Escape takes it back", (await field.inputValue()) === "20", await field.inputValue());
    await general.getByRole("button", { name: "Reset" }).click();
    await waitUntil("default", async () => (await value("follow.poll_max")) === "30");
    check("it goes back to its default", true);
    await general.getByLabel("Clients see all tasks").check();
    await waitUntil("switch", async () => (await value("gateway.share_tasks")) === "yes");
    check("a switch is saved", true);
    const [given] = await Promise.all([page.waitForEvent("download"), general.getByRole("button", { name: "Export…" }).click()]);
    const kept = JSON.parse(readFileSync(await given.path(), "utf8"));
    check("the settings leave as a file", kept.settings["gateway.share_tasks"] === "yes", kept);
    const take = (text) =>
      general.getByLabel("A file of settings").setInputFiles({ name: "s.json", mimeType: "application/json", buffer: Buffer.from(text) });
    await take(JSON.stringify({ ...kept, settings: { "follow.poll_max": "12", "no.such": "1" } }));
    await general.getByText(/no\.such/).waitFor();
    check("a file with a setting that there is not is refused by its name", (await value("follow.poll_max")) === "30");
    await take(JSON.stringify({ ...kept, settings: { "follow.poll_max": "12" } }));
    await general.getByText("It changes:").waitFor();
    check("what a file changes is shown first", (await value("follow.poll_max")) === "30");
    await general.getByRole("button", { name: "Change them" }).click();
    await waitUntil("import", async () => (await value("follow.poll_max")) === "12");
    check("and then taken", true);

    const seen = [];
    for (const name of ["General", "Notices", "Public address", "Storage", "Security", "Keys", "Appearance", "About"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name, exact: true, level: 2 }).waitFor();
      seen.push(...(await breaches(page)).map((breach) => `${name}: ${breach}`));
    }
    check("no breach in any part of the settings", ...none(seen));

    await page.getByRole("link", { name: "Notices", exact: true }).click();
    await page.getByRole("button", { name: "Show a test notice" }).click();
    await page.getByText(/The test notice was not shown|is on the desktop/).waitFor();
    check("a test notice says what came of it", true);
    await page.getByRole("link", { name: "Security", exact: true }).click();
    await page.getByRole("button", { name: `Change… the credential of ${agent.name}` }).click();
    await page.getByLabel("Token").fill("planted-s3cret");
    await page.getByRole("button", { name: "Set", exact: true }).click();
    await page.getByText(/a bearer token/).waitFor();
    check("a credential is set, and never shown", !(await page.content()).includes("planted-s3cret"));

    await page.getByRole("link", { name: "Appearance" }).click();
    const look = () => page.evaluate(() => ({ ...document.documentElement.dataset }));
    await page.getByRole("radio", { name: "Dark" }).check({ force: true });
    check("dark is dark at once", (await look()).scheme === "dark", await look());
    await page.getByRole("radio", { name: "Increased" }).check({ force: true });
    await page.reload();
    await waitUntil("look", async () => (await look()).scheme === "dark" && (await look()).contrast === "more");
    check("and is kept", true);
    await page.getByRole("heading", { name: "Appearance", level: 2 }).waitFor();
    check("no breach in dark with increased contrast", ...none(await breaches(page)));
    await page.getByRole("radio", { name: "Light" }).check({ force: true });
    check("no breach in light with increased contrast", ...none(await breaches(page)));

    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByRole("switch", { name: /Single letters/ }).uncheck();
    await page.evaluate(() => document.activeElement?.blur());
    await keys.press("n");
    await keys.press("?");
    await page.waitForTimeout(150);
    check("single letters can be switched off", (await page.getByRole("dialog").count()) === 0);
    await keys.press("Control+k");
    await page.getByRole("dialog", { name: "Commands" }).waitFor();
    check("others stay", true);
    await keys.press("Escape");
  });
}

export async function health(browser, breaches) {
  await withTasks(browser, async (page, engine, agent) => {
    await page.getByRole("link", { name: "Tasks" }).click();
    await page.keyboard.press("Control+6");
    const screen = page.getByRole("region", { name: "Health" });
    const parts = page.getByRole("region", { name: "Parts" });
    await parts.getByText("store", { exact: true }).waitFor();
    check("health is never empty", (await screen.getByRole("listitem").count()) >= 4);
    await agent.stop();
    await screen.getByRole("button", { name: "Self-test" }).click();
    const test = page.getByRole("region", { name: "Self-test" });
    await test.getByText(/of \d+ well/).waitFor({ timeout: 30_000 });
    const lines = await test.getByRole("listitem").allInnerTexts();
    const line = (part) => lines.find((text) => text.split("\n").includes(part)) ?? "";
    check("the self-test tries the inbox in both dialects", /stored/.test(line("inbox 0.3")) && /stored/.test(line("inbox 1.0")), lines);
    check("and writes and reads what it stands on", /on the disk/.test(line("store")) && /read back/.test(line("keyring")), lines);
    check("it finds the agent that is gone, first", lines[0].includes("does not answer") || /notice/.test(lines[0]), lines);
    check("it says of a notice what came of it", /recorded|shown/.test(line("notices")), lines);
    await screen.getByText("does not work since").first().waitFor();
    check("no breach on the screen", ...none(await breaches(page)));
    const button = screen.getByRole("button", { name: `agent ${agent.name}: Test it now` });
    await button.click();
    await page.getByText(new RegExp(`${agent.name} does not answer`)).first().waitFor();
    check("what is wrong has a button that tries it again", true);
    const history = page.getByRole("region", { name: "History" });
    await history.getByText(`agent ${agent.name}`).first().waitFor();
    check("what changed is in the history", true);
    await screen.getByRole("button", { name: "public address: Open the setting" }).click();
    await page.getByRole("heading", { name: "Public address", level: 2 }).waitFor();
    check("a setting that helps is a click away", true);
    await page.keyboard.press("Control+6");
    await parts.waitFor();
    await engine.halt();
    await page.getByText(/The engine does not answer/).first().waitFor();
    check("without an engine the last known stays, with its age", (await screen.getByRole("listitem").count()) >= 4);
  });
}
