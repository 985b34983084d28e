// Every row of the hostile agent output, in the real page: nothing runs, nothing leaves, nothing escapes its box.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Agent } from "./agent.mjs";
import { open } from "./browser.mjs";
import { check, show, waitUntil } from "./checks.mjs";

const folder = process.env.TASKBELL_HOSTILE ?? resolve(import.meta.dirname, "../hostile");

/** Rows whose place is none of the page's, and why. */
const ELSEWHERE = { artifact_export: "the page exports no table" };

/** What makes text look like other text, or hides it. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/u;

const TABS = ["Result", "Timeline", "Conversation", "Raw"];

/** Runs before anything of the page: every way in which text could become a deed leaves a trace. */
function watch() {
  globalThis.traces = [];
  for (const name of ["alert", "confirm", "prompt", "open", "print"]) {
    globalThis[name] = () => void globalThis.traces.push(name);
  }
  addEventListener("securitypolicyviolation", (event) => globalThis.traces.push(event.violatedDirective));
  addEventListener("message", () => globalThis.traces.push("message"));
  navigator.sendBeacon = () => void globalThis.traces.push("beacon");
}

/** What is in the page now that must not be. */
function breaches() {
  const found = [...globalThis.traces];
  const strange = "img,script,style,iframe,frame,object,embed,base,link,meta,audio,video,math,template,noscript,portal";
  for (const one of document.querySelectorAll(`body :is(${strange})`)) {
    // The page's own program.
    if (one.tagName !== "SCRIPT" || !one.src.startsWith(location.origin)) found.push(`<${one.tagName}>`);
  }
  for (const one of document.querySelectorAll("main *")) {
    for (const { name, value } of one.attributes) {
      if (name.startsWith("on")) found.push(`${one.tagName} ${name}`);
      if (name === "srcdoc" || name === "action" || name === "formaction") found.push(`${one.tagName} ${name}`);
      if (name === "href" && !value.startsWith("#")) found.push(`href ${value}`);
      if (name === "style" && /url\(|fixed/.test(value)) found.push(`style ${value}`);
    }
  }
  if (document.querySelector("main input[type=password], [name=password]")) found.push("a field for a password");
  if ("isAdmin" in {} || "x" in {}) found.push("a polluted prototype");
  if (document.getElementById("__TAURI_INTERNALS__")) found.push("a clobbered name");
  if (getComputedStyle(document.body).display === "none") found.push("a hidden page");
  return found;
}

/** What stands where it must not: outside of its box, or over the controls of the app. */
function escapes() {
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) found.push(`the page is ${root.scrollWidth} wide`);
  if (root.scrollHeight > innerHeight) found.push(`the page is ${root.scrollHeight} high`);
  for (const box of document.querySelectorAll("#task-panel, .question, [role=listbox], [aria-label=Agent]")) {
    const edge = box.getBoundingClientRect();
    if (box.scrollWidth > box.clientWidth + 1) found.push(`${box.className} holds ${box.scrollWidth} of width`);
    if (edge.width > 0 && (edge.left < 0 || edge.right > innerWidth + 1)) found.push(`${box.className} is outside`);
    // Thousands of nodes are alike.
    for (const one of [...box.querySelectorAll("*")].slice(0, 2000)) {
      if (one.closest(".sr-only")) continue;
      const style = getComputedStyle(one);
      if (style.position === "fixed") found.push(`${one.tagName} is fixed`);
      // What scrolls or is cut on its own shows only what its box shows.
      const clipped = one.parentElement?.closest("pre, .table, .line, [style*='clip']");
      if (clipped && box.contains(clipped) && clipped !== box) continue;
      const place = one.getBoundingClientRect();
      if (place.width > 0 && (place.left < edge.left - 1 || place.right > edge.right + 1)) {
        found.push(`${one.tagName}.${one.className} from ${place.left} to ${place.right}, box to ${edge.right}`);
      }
    }
  }
  for (const control of document.querySelectorAll("nav a, [role=tab], .actions button, form.box textarea, form.box button")) {
    control.scrollIntoView({ block: "nearest" });
    const { left, top, width, height } = control.getBoundingClientRect();
    if (width === 0) continue;
    const above = document.elementFromPoint(left + width / 2, top + height / 2);
    if (!above || !(control.contains(above) || above.contains(control))) {
      found.push(`“${control.textContent.trim()}” lies under ${above?.outerHTML.slice(0, 80) ?? "nothing"}`);
    }
  }
  return [...new Set(found)].slice(0, 5);
}

/** Links and pictures of the part that is shown. */
const links = () => {
  const inert = "This address opens nothing: ";
  const panel = document.querySelector("#task-panel");
  const titles = (kind) => [...panel.querySelectorAll(kind)].map((one) => one.title);
  return {
    clickable: [...new Set(titles(".blocks button[title]"))].sort(),
    inert: [...new Set(titles(".blocks .inert").map((title) => title.replace(inert, "")))].sort(),
    images: panel.querySelectorAll(".blocks .image").length,
  };
};

function partOf({ where, text }) {
  switch (where) {
    case "data_part":
      return { data: JSON.parse(text) };
    case "filename":
      return { raw: btoa("content"), filename: text, mediaType: "application/octet-stream" };
    case "artifact_file":
      return { raw: btoa(text), filename: "report.html", mediaType: "text/html" };
    case "artifact_url":
      return { url: text, filename: "elsewhere", mediaType: "text/plain" };
    default:
      return { text };
  }
}

class Stage {
  constructor(page, engine, agent) {
    Object.assign(this, { page, engine, agent, popups: 0, navigations: 0, slowest: { ms: 0, id: "" } });
    page.context().on("page", () => (this.popups += 1));
    page.on("dialog", (dialog) => {
      this.popups += 1;
      void dialog.dismiss();
    });
    page.on("framenavigated", (frame) => {
      if (!frame.url().startsWith(engine.gateway)) this.navigations += 1;
    });
  }

  /** Everything that went wrong since the last time it was asked. */
  async wrongs(where) {
    const { page, engine } = this;
    const wrongs = (await page.evaluate(breaches)).concat(await page.evaluate(escapes));
    await page.evaluate(() => (globalThis.traces.length = 0));
    wrongs.push(...page.asked.filter((url) => !url.startsWith(engine.gateway)).map((url) => `asked ${url}`));
    wrongs.push(...page.problems);
    page.asked.length = 0;
    page.problems.length = 0;
    if (this.popups + this.navigations > 0) wrongs.push(`${this.popups} windows, ${this.navigations} navigations`);
    this.popups = this.navigations = 0;
    const shown = await page.locator("main").innerText();
    const unseen = UNSEEN.exec(shown);
    if (unseen) {
      const around = shown.slice(Math.max(0, unseen.index - 20), unseen.index + 10);
      wrongs.push(`U+${unseen[0].codePointAt(0).toString(16)} in ${JSON.stringify(around)}`);
    }
    return wrongs.map((wrong) => `${where}: ${wrong}`);
  }
}

/** A text of a task: as its title, its question, an artifact and the name of one. */
async function inTask(stage, row) {
  const { page, engine, agent } = stage;
  const wrongs = [];
  const named = row.where === "filename" || row.where === "plain_text" ? row.text.slice(0, 2000) : row.id;
  const artifacts = [{ artifactId: "a", name: named, description: named, parts: [partOf(row)] }];
  // Nested deeper than the engine reads: the answer to a start must be one that it does.
  const refused = row.expect.must.includes("depth_limit_message");
  agent.begin = () => ({
    state: "INPUT_REQUIRED",
    text: row.text,
    artifacts: refused ? [{ artifactId: "a", parts: [{ text: "before" }] }] : artifacts,
  });
  const task = await engine.send(row.text.slice(0, 4000), agent.name);
  if (refused) {
    agent.update(task.slice(task.indexOf("/") + 1), { state: "INPUT_REQUIRED", text: row.text, artifacts });
  }
  const began = performance.now();
  await show(page, task);
  await page.getByRole("textbox", { name: "Your answer" }).waitFor();
  await page.getByRole("tab", { name: "Result" }).click();
  await page.locator("#task-panel section").first().waitFor();
  const ms = performance.now() - began;
  if (ms > stage.slowest.ms) stage.slowest = { ms, id: row.id };
  if (ms > 3000) wrongs.push(`shown after ${Math.round(ms)} ms`);

  const { clickable_links: clickable, inert_links: inert, blocked_images: images, must } = row.expect;
  if (clickable) {
    const seen = await page.evaluate(links);
    const wanted = { clickable: [...new Set(clickable)].sort(), inert: [...new Set(inert)].sort(), images };
    if (JSON.stringify(seen) !== JSON.stringify(wanted)) wrongs.push(`links ${JSON.stringify(seen).slice(0, 400)}`);
    wrongs.push(...(await onlyThroughTheQuestion(page, clickable.slice(0, 3), must)));
  }
  if (must.includes("placeholder_with_host")) {
    const said = await page.locator("#task-panel .image").first().textContent();
    if (!said.includes("evil.example.net")) wrongs.push(`a picture says ${said}`);
  }
  if (must.includes("inside_agent_frame")) {
    const buttons = await page.getByRole("button", { name: /approve|deny/i }).count();
    if (buttons > 0) wrongs.push("agent text made a button");
  }
  if (must.includes("plain_used") && row.where === "plain_text") {
    const title = await page.getByRole("heading", { level: 2 }).first().innerText();
    if (title.trim() !== row.plain) wrongs.push(`the title is ${JSON.stringify(title)}`);
  }
  if (must.includes("hidden_text_flag")) await page.locator(".box").getByText("carried hidden characters").waitFor();
  if (must.includes("collapsed_with_expand")) wrongs.push(...(await collapsed(page)));
  if (refused) await page.getByText("nested deeper than 64 levels").waitFor();
  if (row.where === "filename" || row.where === "artifact_file") wrongs.push(...(await saved(page, row)));
  for (const tab of TABS) {
    await page.getByRole("tab", { name: tab }).click();
    wrongs.push(...(await stage.wrongs(tab)));
  }
  return wrongs;
}

/** A link opens nothing before somebody has read where it leads. */
async function onlyThroughTheQuestion(page, urls, must) {
  const wrongs = [];
  for (const url of urls) {
    const link = page.locator("#task-panel .blocks button[title]").filter({ visible: true });
    const at = (await link.evaluateAll((all) => all.map((one) => one.title))).indexOf(url);
    if (at < 0) continue;
    const label = await link.nth(at).textContent();
    await link.nth(at).click();
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    const said = await dialog.textContent();
    if (!said.includes(url)) wrongs.push(`the question does not show ${url.slice(0, 80)}`);
    if (must.includes("destination_host_shown") && !label.includes("evil.example.net")) wrongs.push(`link “${label}”`);
    if (must.includes("punycode_shown") && !label.includes("xn--")) wrongs.push(`link “${label}”`);
    if (must.includes("userinfo_warning") && !said.includes("before the @")) wrongs.push("no word about the @");
    const stay = dialog.getByRole("button", { name: "Stay" });
    const box = await dialog.boundingBox();
    const size = page.viewportSize();
    if (box.x < 0 || box.y < 0 || box.x + box.width > size.width || box.y + box.height > size.height) {
      wrongs.push(`the question is outside: ${JSON.stringify(box)}`);
    }
    await stay.click();
    await dialog.waitFor({ state: "detached" });
  }
  return wrongs;
}

/** A long question leaves its answer in sight, and is there for who asks for it. */
async function collapsed(page) {
  const wrongs = [];
  const question = page.locator(".question");
  const lines = async () => (await question.innerText()).split("\n").length;
  const before = await lines();
  const { y, height } = await page.getByRole("textbox", { name: "Your answer" }).boundingBox();
  if (y + height > page.viewportSize().height) wrongs.push("the answer is off the screen");
  await page.getByRole("button", { name: /^Show [\d,]+ more lines$/ }).click();
  await page.getByRole("button", { name: "Show less" }).waitFor();
  if (before > 20) wrongs.push(`${before} lines before more are asked for`);
  // What comes into sight is laid out a moment later.
  await waitUntil("more lines", async () => (await lines()) >= before + 100);
  await page.getByRole("button", { name: "Show less" }).click();
  return wrongs;
}

/** What is saved has a name of its own folder that starts nothing. */
async function saved(page, row) {
  const wrongs = [];
  const panel = page.locator("#task-panel");
  const names = await panel.locator("bdi").allInnerTexts();
  if (names.some((name) => /[/\\]/.test(name) && row.where === "filename" && name !== row.plain)) {
    wrongs.push(`a path is shown: ${JSON.stringify(names)}`);
  }
  const coming = page.waitForEvent("download");
  await panel.getByRole("button", { name: "Save" }).last().click();
  const question = page.getByRole("dialog");
  if (/\.(html|exe|desktop)$/.test(row.plain) || row.expect.must.includes("saved_with_warning")) {
    const said = await question.innerText();
    if (!said.includes("may run what is in it")) wrongs.push(`saved after “${said}”`);
    await question.getByRole("button", { name: "Save" }).click();
  }
  const name = (await coming).suggestedFilename();
  if (UNSEEN.test(name) || /[/\\:]|^\.|\.\.|^(con|nul|prn|aux)\b/i.test(name)) {
    wrongs.push(`saved as ${JSON.stringify(name)}`);
  }
  return wrongs;
}

/** A text of an agent's card. */
async function inCard(stage, row) {
  const { page, engine, agent: main } = stage;
  const agent = await Agent.start("carded");
  const evil = "https://evil.example.net/a2a";
  const wrongs = [];
  try {
    if (row.where === "agent_name") agent.card = { name: row.text };
    if (row.where === "agent_card_description") agent.card = { description: row.text, skills: [] };
    if (row.where === "agent_card_url") {
      agent.card = {
        supportedInterfaces: [{ url: row.text, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      };
    }
    await page.getByRole("link", { name: "Agents" }).click();
    await page.getByRole("button", { name: "Add agent…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Address, or a curl line").fill(agent.url);
    await dialog.getByLabel("Name", { exact: true }).fill("carded");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    const heading = page.getByRole("heading", { name: "carded", exact: true });
    const asked = dialog.getByText("Follow the card's own address");
    await heading.or(asked).or(dialog.getByRole("alert")).first().waitFor();
    wrongs.push(...(await stage.wrongs("adding")));
    if (await dialog.isVisible()) {
      if (row.where !== "agent_card_url") wrongs.push(`not added: ${await dialog.innerText()}`);
      await page.keyboard.press("Escape");
      return wrongs;
    }
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByText(/^It (answers|does not answer)\./).waitFor();
    wrongs.push(...(await stage.wrongs("agent")));
    const { interfaceUrl } = await engine.call("GET", "/agents/carded");
    if ((interfaceUrl ?? "").startsWith(evil.slice(0, 24))) wrongs.push(`calls go to ${interfaceUrl}`);
    if (!(await page.getByLabel("Agent", { exact: true }).innerText()).includes(new URL(agent.url).host)) {
      wrongs.push("the host is not beside the name");
    }
    await engine.call("DELETE", "/agents/carded");
    await page.getByRole("option", { name: /carded/ }).waitFor({ state: "detached" });
  } finally {
    await agent.stop();
    if (main.received.length > 1000) main.received.length = 0;
  }
  return wrongs;
}

export async function agentOutput(browser, engine) {
  const rows = readFileSync(join(folder, "agent_output.jsonl"), "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .map((row) => (row.text_gen ? { ...row, text: row.text_gen.unit.repeat(row.text_gen.count) } : row));
  const agent = await Agent.start("hostile");
  await engine.call("POST", "/agents", { name: agent.name, url: agent.url });
  const page = await open(browser, engine, { first: watch });
  await page.getByRole("link", { name: "Tasks" }).click();
  const stage = new Stage(page, engine, agent);
  page.asked.length = 0;
  let shown = 0;
  const skipped = [];
  try {
    for (const row of rows) {
      const { id, name, where } = row;
      if (ELSEWHERE[where]) {
        skipped.push(id);
        console.log(`skipped ${id} ${name}: ${ELSEWHERE[where]}`);
        continue;
      }
      shown += 1;
      try {
        const wrongs = await (where.startsWith("agent_") ? inCard(stage, row) : inTask(stage, row));
        check(`${id} ${name}: nothing runs, leaves or escapes`, wrongs.length === 0, wrongs);
      } catch (error) {
        check(`${id} ${name}`, false, error.message.split("\n").slice(0, 4).join(" "));
        await page.keyboard.press("Escape");
      }
    }
    check("all rows but those without a place in the page were shown", shown + skipped.length === rows.length && shown >= 50, shown);
    console.log(`   slowest to be seen: ${stage.slowest.id}, ${Math.round(stage.slowest.ms)} ms`);
  } finally {
    await page.context().close();
    await agent.stop();
  }
}
