// The gateway in the page: a client made here calls an agent through it, is called back, and is shut out again.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { open } from "./browser.mjs";
import { check, waitUntil } from "./checks.mjs";
import { Engine } from "./engine.mjs";

/** One call through the gateway, as a client of 1.0 makes it. */
async function ask(engine, key, method, params) {
  return fetch(`${engine.gateway}/agents/demo/`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${key}`,
      "A2A-Version": "1.0",
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
}

const message = (text) => ({
  message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text }] },
});

/** Somebody on this machine who is called back. It takes no ends while it `refuses`. */
export async function receiver() {
  const seen = [];
  const one = { seen, refuses: false };
  const server = createServer((request, answer) => {
    let body = "";
    request.on("data", (more) => (body += more));
    request.on("end", () => {
      seen.push(request.headers["webhook-id"]);
      answer.writeHead(one.refuses && body.includes("TASK_STATE_COMPLETED") ? 503 : 200).end();
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  one.port = server.address().port;
  one.url = `http://127.0.0.1:${one.port}/hook`;
  one.stop = () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return one;
}

/** Clients with requests behind them and a receiver that fails: what a gateway looks like in use. */
export async function playGateway(engine, hook) {
  const names = ["editor", "a-script-with-a-rather-long-name"];
  const keys = [];
  for (const name of names) keys.push((await engine.call("POST", "/clients", { name })).key);
  await engine.call("POST", "/targets", { client: names[0], port: hook.port });
  hook.refuses = true;
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  const texts = [
    "Sum up the week",
    "Read every report of the last quarter, compare what they say of the same incident, and list each difference",
    "لخّص ملاحظات اجتماع الأسبوع الماضي",
  ];
  for (const text of texts) await ask(engine, keys[0], "SendMessage", { ...message(text), configuration });
  await ask(engine, keys[1], "SendMessage", message("Collect the release notes"));
  await ask(engine, keys[1], "GetTask", { id: "a-task-of-somebody-else" });
}

async function makeClient(page, name) {
  await page.getByRole("button", { name: "New client key…" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  const key = await page.getByLabel("Key", { exact: true }).inputValue();
  await waitUntil("copied key", async () => (await page.evaluate(() => navigator.clipboard.readText())) === key);
  await page.getByRole("button", { name: "Done" }).click();
  return key;
}

/** What left for a client, seen from its task and from the agent's callback that said the same. */
async function showsWhatLeft(page, engine, key, hook, look) {
  await page.getByRole("button", { name: "Open the task" }).click();
  await page.getByRole("tab", { name: "Callbacks" }).click();
  const left = page.getByRole("list", { name: "Delivered" });
  await left.getByText(/^delivered · editor/).first().click();
  await left.getByText("answered 503").first().waitFor();
  await left.getByText("answered 200").first().waitFor();
  check("a task's tab shows what left for clients, with its attempts", true);
  await look("delivered");

  // A task that is followed by stream is registered at its agent only where the user says so.
  const configuration = { taskPushNotificationConfig: { url: hook.url }, returnImmediately: true };
  const sent = await ask(engine, key, "SendMessage", { ...message("steps=4 interval=0.5"), configuration });
  const task = `demo/${(await sent.json()).result.task.id}`;
  await engine.call("POST", `/tasks/${task}/registrations`, {});
  const item = await waitUntil("callback of the end", async () =>
    (await engine.call("GET", "/inbox")).items.find((one) => one.task === task && one.claimed === "completed"),
  );
  await page.evaluate((id) => (location.hash = `#/inbox/${id}`), item.id);
  await page.getByRole("tab", { name: "Relay" }).click();
  await left.getByText(/^delivered · editor/).first().waitFor();
  check("a callback's tab shows where it was relayed to", true);
  await look("relay");
}

async function delivers(page, engine, key, hook, look) {
  await page.keyboard.press("]");
  await page.getByRole("button", { name: "Approve a port…" }).click();
  await page.getByLabel("Port").fill("70000");
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await page.getByText("A port is a number from 1 to 65535.").waitFor();
  await page.getByLabel("Port").fill(String(hook.port));
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await page
    .getByRole("listitem")
    .filter({ hasText: `:${hook.port}` })
    .waitFor();
  check("a receiver on this machine is approved by its port", true);

  hook.refuses = true;
  const configuration = { taskPushNotificationConfig: { url: hook.url } };
  await ask(engine, key, "SendMessage", { ...message("Call me back"), configuration });
  const row = page.getByRole("option", { name: /^failed · Call me back.*reserved/ });
  await row.click();
  await page.getByRole("listitem").filter({ hasText: "answered 503" }).first().waitFor();
  check("a delivery that was not taken shows its attempt", true);
  await look("deliveries");
  // What fails is tried again by itself after a while; paused, only what is asked for is.
  await page.getByRole("button", { name: /^Pause/ }).click();
  await page.getByRole("button", { name: /^Resume/ }).waitFor();
  check("a receiver is paused", hook.seen.length >= 1, hook.seen);
  hook.refuses = false;
  await page.getByRole("button", { name: /^Resume/ }).click();
  const arrived = page.getByRole("option", { name: /^delivered · Call me back.*reserved/ });
  await arrived.waitFor();
  await page.getByRole("listitem").filter({ hasText: "answered 200" }).waitFor();
  check("resumed, it gets what waited", true);
  check("each attempt carries the same id", new Set(hook.seen).size < hook.seen.length, hook.seen);
  const tries = await arrived.innerText();
  check("how many attempts there will be is said", /attempt \d of 9/.test(tries), tries);
  await showsWhatLeft(page, engine, key, hook, look);
  await page.keyboard.press("Control+4");

  await page.getByRole("button", { name: /^Remove…/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("not approved", { exact: false }).waitFor();
  check("an approval is taken back", true);
}

export async function gateway(browser, breaches) {
  const engine = await Engine.start();
  const hook = await receiver();
  try {
    const page = await open(browser, engine);
    const found = [];
    const look = async (what) => found.push(...(await breaches(page)).map((breach) => `${what}: ${breach}`));
    await page.getByRole("link", { name: "Gateway" }).waitFor();
    await page.keyboard.press("Control+4");
    await page.getByRole("heading", { name: "Copy this base URL into your client" }).waitFor();
    const base = await page.getByLabel("Base URL").inputValue();
    check("the base URL is the gateway's, for the agent", base === `${engine.gateway}/agents/demo/`, base);
    await look("empty");

    await page.getByRole("button", { name: "New client key…" }).click();
    await page.getByLabel("Name").fill("Not A Name");
    await page.getByRole("button", { name: "Make a key" }).click();
    await page.getByRole("alert").waitFor();
    // Chromium itself tells of every answer that is no success.
    const told = page.problems.splice(0);
    check("a name that cannot be is refused in the dialog", told.length === 1 && told[0].includes("400"), told);
    await page.keyboard.press("Escape");
    const key = await makeClient(page, "editor");
    await page.getByText(/no request yet/).waitFor();
    check("a key is made, shown once and copied", !(await page.content()).includes(key));

    const answer = await (await ask(engine, key, "SendMessage", message("Sum up the week"))).json();
    const id = answer.result?.task?.id;
    check("the key opens the gateway", typeof id === "string", answer);
    await page.getByText(/1 request · 1 task/).waitFor();
    check("the client's use is counted", true);
    await look("clients");

    await page.getByRole("tab", { name: "Traffic" }).click();
    await page.getByRole("option", { name: /^SendMessage · demo.*Sum up the week/ }).click();
    await look("traffic");
    check("the request stands in the traffic", /editor/.test(await page.getByRole("option").first().innerText()));
    await page.getByRole("button", { name: "Open the task" }).click();
    await page.getByRole("heading", { name: "Sum up the week" }).waitFor();
    check("and leads to its task", page.url().includes(`#/tasks/demo/${id}`), page.url());
    await page.keyboard.press("Control+4");
    const stranger = (await engine.call("POST", "/clients", { name: "stranger" })).key;
    await ask(engine, stranger, "GetTask", { id });
    await page.getByRole("option", { name: /^GetTask · demo.*error -32001.*stranger/ }).click();
    await page.getByText(/^GetTask by/).waitFor();
    const offered = await page.getByRole("button", { name: "Open the task" }).count();
    check("what a client may not see is no task of its request", offered === 0, offered);
    await engine.call("DELETE", "/clients/stranger");
    check("the tab is kept", await page.getByRole("tab", { name: "Traffic", selected: true }).isVisible());
    await delivers(page, engine, key, hook, look);

    await page.keyboard.press("[");
    await page.keyboard.press("[");
    await page.getByRole("button", { name: /^Revoke…/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Keep it" }).click();
    check("revoking asks first", (await ask(engine, key, "GetTask", { id })).status === 200);
    await page.getByRole("button", { name: /^Revoke…/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByText(/is taken back/).waitFor();
    check("a revoked key is refused", (await ask(engine, key, "GetTask", { id })).status === 401);

    check("no breach of the accessibility rules", found.length === 0, found);
    check("nothing went wrong in the page", page.problems.length === 0, page.problems);
    const foreign = page.asked.filter((address) => !address.startsWith(engine.gateway));
    check("nothing but the engine was asked", foreign.length === 0, foreign);
    await page.context().close();
  } finally {
    await Promise.all([engine.stop(), hook.stop()]);
  }
}
