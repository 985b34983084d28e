// A page of somebody else in the same browser, which even knows a client's key: it can make no call.
import { createServer } from "node:http";
import { launch } from "./browser.mjs";
import { check } from "./checks.mjs";
import { Engine } from "./engine.mjs";

/** Resolves to this machine in the browser that is launched here, as a rebinding name would. */
const REBOUND = "rebound.example";

const request = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "message/send",
  params: {
    message: { kind: "message", role: "user", messageId: "from-a-page", parts: [{ kind: "text", text: "steps=1 interval=900" }] },
    configuration: { blocking: false },
  },
});

/** Everything a page can try, run inside of one. Says for each what it got to read. */
async function attempts({ base, key, request }) {
  const seen = {};
  const ask = async (name, make) => {
    try {
      const answer = await make();
      seen[name] = answer.type === "opaque" ? "opaque" : `${answer.status} ${(await answer.text()).slice(0, 80)}`;
    } catch (error) {
      seen[name] = error.name;
    }
  };
  const rpc = `${base}/agents/demo/`;
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  await ask("fetch with the key", () => fetch(rpc, { method: "POST", headers, body: request }));
  await ask("fetch without headers", () => fetch(rpc, { method: "POST", body: request }));
  await ask("no-cors fetch", () => fetch(rpc, { method: "POST", mode: "no-cors", credentials: "include", body: request }));
  await ask("fetch of the card", () => fetch(`${rpc}.well-known/agent-card.json`));
  await ask("no-cors fetch of the card", () => fetch(`${rpc}.well-known/agent-card.json`, { mode: "no-cors" }));
  await ask("beacon", async () => {
    navigator.sendBeacon(rpc, new Blob([request], { type: "text/plain" }));
    return new Response("");
  });
  seen.form = await new Promise((done) => {
    const frame = Object.assign(document.createElement("iframe"), { name: "target" });
    document.body.append(frame);
    const form = Object.assign(document.createElement("form"), { action: rpc, method: "post", enctype: "text/plain", target: "target" });
    // The text of the field becomes the request: {"…":"=…"} is still JSON.
    form.append(Object.assign(document.createElement("input"), { name: request.slice(0, -1) + ',"x":"', value: '"}' }));
    document.body.append(form);
    let loads = 0;
    frame.addEventListener("load", () => {
      loads += 1;
      let text;
      try {
        text = frame.contentDocument?.body?.textContent ?? null;
      } catch {
        text = null;
      }
      if (loads > 1 || frame.contentDocument === null) done(text);
    });
    form.submit();
    setTimeout(() => done(null), 3000);
  });
  seen.eventsource = await new Promise((done) => {
    const source = new EventSource(`${rpc}tasks/x:subscribe?key=${key}`);
    source.onopen = () => done("open");
    source.onmessage = () => done("message");
    source.onerror = () => (source.close(), done("error"));
  });
  seen.websocket = await new Promise((done) => {
    const socket = new WebSocket(rpc.replace("http:", "ws:"));
    socket.onopen = () => done("open");
    socket.onerror = () => done("error");
  });
  seen.script = await new Promise((done) => {
    const script = document.createElement("script");
    script.onload = () => done("loaded");
    script.onerror = () => done("error");
    script.src = `${rpc}.well-known/agent-card.json`;
    document.head.append(script);
  });
  return seen;
}

export async function foreignPage() {
  const site = createServer((_, answer) => {
    answer.writeHead(200, { "Content-Type": "text/html" });
    answer.end("<!doctype html><title>Somebody else</title><p>Hello");
  });
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  const engine = await Engine.start();
  const browser = await launch([`--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`]);
  try {
    const { key } = await engine.call("POST", "/clients", { name: "leaked" });
    const tasks = async () => (await engine.call("GET", "/tasks")).items.length;
    const before = await tasks();
    const page = await browser.newPage();
    await page.goto(`http://localhost:${site.address().port}/`);
    const seen = await page.evaluate(attempts, { base: engine.gateway, key, request });
    for (const [name, got] of Object.entries(seen)) {
      const nothing = [null, "", "error", "opaque", "TypeError", "200 "].includes(got);
      check(`a foreign page reads nothing by ${name}`, nothing, got);
    }
    check("a foreign page starts no task", (await tasks()) === before, await tasks());

    // The same name as the gateway's own port: the browser takes this page for the gateway's own.
    const rebound = `http://${REBOUND}:${new URL(engine.gateway).port}`;
    const answer = await page.goto(`${rebound}/agents/demo/.well-known/agent-card.json`);
    check("a name that is rebound to this machine is refused", answer.status() === 421, answer.status());
    const inside = await page.evaluate(
      async ({ key, request }) => {
        const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
        const answer = await fetch("/agents/demo/", { method: "POST", headers, body: request });
        return answer.status;
      },
      { key, request },
    );
    check("and so is a call under that name, key or not", inside === 421 || inside === 403, inside);
    check("a rebound name starts no task", (await tasks()) === before, await tasks());

    // The attempts were real: without a browser's marks the same request is taken.
    const honest = await fetch(`${engine.gateway}/agents/demo/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}`, Connection: "close" },
      body: request,
    });
    check("a program with that key may call", honest.status === 200 && (await honest.json()).result?.id, honest.status);
    check("and starts its task", (await tasks()) === before + 1, await tasks());
  } finally {
    await browser.close();
    await engine.stop();
    site.closeAllConnections();
    site.close();
  }
}
