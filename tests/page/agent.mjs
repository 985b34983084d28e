// An A2A 1.0 agent whose tasks are what a test says: states, words and artifacts of any content.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const ENDED = new Set(["COMPLETED", "FAILED", "CANCELED", "REJECTED"]);

const withoutSecrets = ({ token: _, authentication, ...rest }) => ({
  ...rest,
  ...(authentication ? { authentication: { scheme: authentication.scheme } } : {}),
});

export class Agent {
  tasks = new Map();
  listeners = new Map();
  /** Where each task is to be called back, as registered. */
  configs = new Map();
  /** Messages received, the newest last. */
  received = [];
  /** What the card says otherwise than a plain one. */
  card = {};
  /** What a new task begins as: its state, words and artifacts. */
  begin = () => ({ state: "WORKING", text: "" });

  static async start(name, { streaming = true } = {}) {
    const agent = new Agent();
    agent.name = name;
    agent.streaming = streaming;
    agent.server = createServer((request, answer) => void agent.answer(request, answer));
    await new Promise((done) => agent.server.listen(0, "127.0.0.1", done));
    agent.url = `http://127.0.0.1:${agent.server.address().port}/`;
    return agent;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }

  /** Tells of a task anew: followers see it. */
  update(id, { state, text, artifacts }) {
    const task = this.tasks.get(id);
    if (artifacts) task.artifacts = artifacts;
    task.status = this.status(state, text, task);
    const statusUpdate = { taskId: id, contextId: task.contextId, status: task.status };
    for (const answer of this.listeners.get(id) ?? []) {
      // A snapshot replaces what was known, artifacts included.
      this.event(answer, artifacts ? { task } : { statusUpdate });
      if (ENDED.has(state)) answer.end();
    }
  }

  /** Breaks every open stream of a task off. */
  cut(id) {
    for (const answer of this.listeners.get(id) ?? []) answer.destroy();
  }

  /** Posts a body to where a task was registered, with its token or another one; the status of the answer. */
  async callBack(id, body, token) {
    const config = this.configs.get(id);
    const headers = { "Content-Type": "application/json", "X-A2A-Notification-Token": token ?? config.token };
    const answer = await fetch(config.url, { method: "POST", headers, body: JSON.stringify(body) });
    await answer.arrayBuffer();
    return answer.status;
  }

  status(state, text, task) {
    const message = {
      role: "ROLE_AGENT",
      messageId: randomUUID(),
      taskId: task.id,
      contextId: task.contextId,
      parts: [{ text }],
    };
    return { state: `TASK_STATE_${state}`, timestamp: new Date().toISOString(), ...(text ? { message } : {}) };
  }

  event(answer, result) {
    answer.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: answer.rpcId, result })}\n\n`);
  }

  async answer(request, answer) {
    const json = (value, status = 200) => {
      answer.writeHead(status, { "Content-Type": "application/json" });
      answer.end(JSON.stringify(value));
    };
    if (request.url === "/.well-known/agent-card.json") {
      json({
        name: this.name,
        description: "An agent of the page's tests",
        version: "1",
        supportedInterfaces: [{ url: this.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
        capabilities: { streaming: this.streaming, pushNotifications: false },
        defaultInputModes: ["text/plain"],
        defaultOutputModes: ["text/plain"],
        skills: [],
        ...this.card,
      });
      return;
    }
    if (request.method !== "POST") {
      json({}, 404);
      return;
    }
    let body = "";
    for await (const chunk of request) body += chunk;
    const { id: rpcId, method, params } = JSON.parse(body);
    const result = (value) => json({ jsonrpc: "2.0", id: rpcId, result: value });
    const refuse = (code, message) => json({ jsonrpc: "2.0", id: rpcId, error: { code, message } });
    if (method === "SendMessage") {
      const { message } = params;
      this.received.push(message);
      const known = this.tasks.get(message.taskId);
      if (known) {
        known.history.push(message);
        known.status = this.status("WORKING", "", known);
        result({ task: known });
        return;
      }
      const task = { id: randomUUID(), contextId: randomUUID(), artifacts: [], history: [message] };
      const { state, text, artifacts } = this.begin(message.parts[0]?.text ?? "");
      if (artifacts) task.artifacts = artifacts;
      task.status = this.status(state, text, task);
      this.tasks.set(task.id, task);
      result({ task });
      return;
    }
    if (method === "ListTasks") {
      result({ tasks: [...this.tasks.values()], nextPageToken: "", pageSize: 50, totalSize: this.tasks.size });
      return;
    }
    if (method === "CreateTaskPushNotificationConfig") {
      this.configs.set(params.taskId, params);
      result(withoutSecrets(params));
      return;
    }
    if (method === "ListTaskPushNotificationConfigs") {
      const config = this.configs.get(params.taskId);
      result({ configs: config ? [withoutSecrets(config)] : [], nextPageToken: "" });
      return;
    }
    if (method === "DeleteTaskPushNotificationConfig") {
      result({});
      return;
    }
    const task = this.tasks.get(params?.id);
    if (!task) {
      refuse(-32001, "task not found");
    } else if (method === "GetTask") {
      result(task);
    } else if (method === "CancelTask") {
      this.update(task.id, { state: "CANCELED", text: "" });
      result(task);
    } else if (method === "SubscribeToTask" && this.streaming) {
      if (ENDED.has(task.status.state.replace("TASK_STATE_", ""))) {
        refuse(-32004, "the task has ended");
        return;
      }
      answer.writeHead(200, { "Content-Type": "text/event-stream" });
      answer.rpcId = rpcId;
      const listeners = this.listeners.get(task.id) ?? new Set();
      this.listeners.set(task.id, listeners.add(answer));
      answer.on("close", () => listeners.delete(answer));
      this.event(answer, { task });
    } else {
      refuse(-32601, "no such method");
    }
  }
}
