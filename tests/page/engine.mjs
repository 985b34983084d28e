// A real engine with its built-in agent for the page's tests: started, asked and stopped as a user would.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
export const program = resolve(
  process.env.TASKBELL_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/taskbell"),
);
const READY_MS = 30_000;

export class Engine {
  /** @param {string[]} options more for `serve` */
  static async start(options = []) {
    const engine = new Engine();
    engine.folder = mkdtempSync(join(tmpdir(), "taskbell-page-"));
    await engine.run(options);
    return engine;
  }

  async run(options = []) {
    this.options = options;
    const words = ["serve", "--json", "--demo", "--gateway", this.address ?? "127.0.0.1:0"];
    words.push("--inbox", "127.0.0.1:0", "--credential-store", "memory", "--data-dir", this.folder, ...options);
    this.child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
    this.log = "";
    this.child.stderr.on("data", (text) => (this.log = (this.log + text).slice(-8000)));
    const line = await new Promise((done, fail) => {
      let text = "";
      const timer = setTimeout(() => fail(new Error(`the engine was not ready in time\n${this.log}`)), READY_MS);
      this.child.stdout.on("data", (more) => {
        text += more;
        if (!text.includes("\n")) return;
        clearTimeout(timer);
        done(text.slice(0, text.indexOf("\n")));
      });
      this.child.once("error", fail);
      this.child.once("exit", (code) => fail(new Error(`the engine ended with ${code}\n${this.log}`)));
    });
    const ready = JSON.parse(line);
    this.gateway = ready.gateway;
    this.page = ready.page;
    this.address = ready.gateway.replace("http://", "");
    this.token = JSON.parse(readFileSync(join(this.folder, "runtime.json"), "utf8")).token;
  }

  /** One call of the API, as the command line makes it. */
  async call(method, path, body) {
    const answer = await fetch(`${this.gateway}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const value = answer.status === 204 ? null : await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value)}`);
    return value;
  }

  async send(text, agent = "demo") {
    return (await this.call("POST", `/agents/${agent}/send`, { text })).task;
  }

  /** A sign-in link that nobody has used. */
  async newPage() {
    return (await this.call("POST", "/page-login", {})).url;
  }

  /** Ends the process and keeps its folder. */
  async halt(signal = "SIGTERM") {
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), 8_000);
    await ended;
    clearTimeout(timer);
  }

  async stop() {
    await this.halt();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
