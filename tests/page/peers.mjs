// The page against one real agent of each SDK: added by its address, given a task, answered, read to its end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { open } from "./browser.mjs";
import { check, waitUntil } from "./checks.mjs";
import { Engine } from "./engine.mjs";

const code = resolve(import.meta.dirname, "../peers");
const home = process.env.TASKBELL_PEERS ?? join(homedir(), ".cache/taskbell/peers");

export const PEERS = [
  { name: "py03", program: join(home, "py03/bin/python"), script: "py03/agent.py", dialect: "0.3" },
  { name: "py1", program: join(home, "py1/bin/python"), script: "py1/agent.py", dialect: "1.0" },
  { name: "js03", program: process.execPath, script: "js/agent03.mjs", dialect: "0.3" },
  { name: "js1", program: process.execPath, script: "js/agent1.mjs", dialect: "1.0" },
];

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function start({ name, program, script }) {
  const port = await freePort();
  const child = spawn(program, [join(code, script), "--port", String(port)], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, PEERS_JS: join(home, "js"), AGENT_TOKEN: "", AGENT_PRESETS: "" },
  });
  let log = "";
  child.stderr.on("data", (text) => (log = (log + text).slice(-2000)));
  child.once("error", (error) => (log += String(error)));
  const url = `http://127.0.0.1:${port}/`;
  const up = await waitUntil(
    `answer of ${name}`,
    async () => {
      if (child.exitCode !== null || child.pid === undefined) return "ended";
      const answer = await fetch(`${url}.well-known/agent-card.json`).catch(() => null);
      return answer?.ok && "up";
    },
    40_000,
  ).catch(() => "silent");
  if (up !== "up") {
    child.kill("SIGKILL");
    throw new Error(`${name} did not come up (tests/peers/setup installs it): ${log}`);
  }
  return {
    url,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

export async function withPeer(browser, peer) {
  const real = await start(peer);
  try {
    const engine = await Engine.start();
    try {
      await talk(await open(browser, engine), engine, peer, real.url);
    } finally {
      await engine.stop();
    }
  } finally {
    await real.stop();
  }
}

async function talk(page, engine, { name, dialect }, url) {
  await page.getByRole("link", { name: "Agents" }).click();
  await page.getByRole("button", { name: "Add agent…" }).click();
  await page.getByLabel("Address, or a curl line").fill(url);
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { name, exact: true }).waitFor();
  const spoken = (await engine.call("GET", `/agents/${name}`)).dialect;
  check(`${name} is added by its address and speaks ${dialect}`, spoken === dialect, spoken);

  const script = "steps=3 interval=0.3 ask=2";
  await page.getByRole("button", { name: "Start a task…" }).click();
  await page.getByRole("dialog").getByLabel("What it should do").fill(script);
  await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("heading", { name: script }).waitFor();
  const answer = page.getByRole("textbox", { name: "Your answer" });
  await answer.waitFor({ timeout: 30_000 });
  check(`${name} asks in the page`, true);
  await answer.fill("go on");
  await page.getByRole("button", { name: /^Reply/ }).click();
  await answer.waitFor({ state: "detached", timeout: 30_000 });
  await page.getByRole("tab", { name: "Result" }).click();
  await page.getByText("chunk 1/3;chunk 2/3;chunk 3/3;", { exact: true }).waitFor({ timeout: 30_000 });
  const task = page.url().slice(page.url().indexOf("#/tasks/") + 8);
  await waitUntil("end", async () => (await engine.call("GET", `/tasks/${task}`)).state === "completed", 30_000);
  const row = page.getByRole("option", { name: new RegExp(`finished.*${script}|${script}.*finished`) }).first();
  await row.waitFor({ timeout: 30_000 });
  check(`${name} is answered in the page, finishes, and its whole text is there`, true);
  const foreign = page.asked.filter((one) => !one.startsWith(engine.gateway));
  check(`${name}: the page asked nobody but the engine`, foreign.length === 0, foreign);
  check(`${name}: nothing went wrong in the page`, page.problems.length === 0, page.problems);
  await page.context().close();
}
