/** The API's operations as functions: paths and bodies stand here and nowhere else. */
import type { Host } from "../host/host";
import type { components } from "./schema";
import type {
  Agent,
  AgentTest,
  Callback,
  CallbackDetail,
  Credential,
  Health,
  InboxTest,
  NewAgent,
  Notice,
  Page,
  ReconcileItem,
  Rendered,
  Replay,
  ReportCard,
  SendOutcome,
  TaskDetail,
  TaskSummary,
} from "./types";

/** `AGENT/TASKID` as a path. A task's id may hold anything, also slashes. */
export function taskPath(task: string): string {
  const slash = task.indexOf("/");
  return `/tasks/${encodeURIComponent(task.slice(0, slash))}/${encodeURIComponent(task.slice(slash + 1))}`;
}

const agentPath = (agent: string): string => `/agents/${encodeURIComponent(agent)}`;

export interface TaskQuery {
  open?: boolean;
  limit?: number;
  cursor?: string;
}

export class Calls {
  constructor(private readonly host: Host) {}

  private get<T>(path: string): Promise<T> {
    return this.host.request("GET", path) as Promise<T>;
  }

  private post<T>(path: string, body: unknown = {}): Promise<T> {
    return this.host.request("POST", path, body) as Promise<T>;
  }

  private put<T>(path: string, body: unknown): Promise<T> {
    return this.host.request("PUT", path, body) as Promise<T>;
  }

  version(): Promise<{ version: string }> {
    return this.get("/hello?c=page");
  }

  tasks(query: TaskQuery = {}): Promise<Page<TaskSummary>> {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) params.set(name, String(value));
    return this.get(`/tasks?${params.toString()}`);
  }

  task(task: string): Promise<TaskDetail> {
    return this.get(taskPath(task));
  }

  rendered(task: string): Promise<Rendered> {
    return this.get(`${taskPath(task)}/rendered`);
  }

  reply(task: string, text: string): Promise<TaskSummary> {
    return this.post(`${taskPath(task)}/reply`, { text });
  }

  cancelTask(task: string): Promise<TaskSummary> {
    return this.post(`${taskPath(task)}/cancel`);
  }

  pinTask(task: string, pinned: boolean): Promise<TaskSummary> {
    return this.put(`${taskPath(task)}/pin`, { pinned });
  }

  archiveTask(task: string, archived: boolean): Promise<TaskSummary> {
    return this.put(`${taskPath(task)}/archive`, { archived });
  }

  followTask(task: string, following: "on" | "paused"): Promise<TaskSummary> {
    return this.put(`${taskPath(task)}/follow`, { following });
  }

  async reconcile(request: components["schemas"]["ReconcileRequest"]): Promise<ReconcileItem[]> {
    return (await this.post<Page<ReconcileItem>>("/reconcile", request)).items;
  }

  async agents(): Promise<Agent[]> {
    return (await this.get<Page<Agent>>("/agents")).items;
  }

  addAgent(agent: NewAgent): Promise<Agent> {
    return this.post("/agents", agent);
  }

  removeAgent(agent: string): Promise<unknown> {
    return this.host.request("DELETE", agentPath(agent));
  }

  testAgent(agent: string): Promise<AgentTest> {
    return this.post(`${agentPath(agent)}/test`);
  }

  importTasks(agent: string): Promise<components["schemas"]["ImportOutcome"]> {
    return this.post(`${agentPath(agent)}/import`);
  }

  pinDialect(agent: string, dialect: string | null): Promise<Agent> {
    return this.put(`${agentPath(agent)}/dialect`, { dialect });
  }

  setCredential(agent: string, credential: Credential): Promise<Agent> {
    return this.put(`${agentPath(agent)}/credential`, credential);
  }

  report(agent: string): Promise<ReportCard> {
    return this.get(`${agentPath(agent)}/report`);
  }

  inbox(query: { limit?: number; cursor?: string; task?: string } = {}): Promise<Page<Callback>> {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) params.set(name, String(value));
    return this.get(`/inbox?${params.toString()}`);
  }

  callback(id: string): Promise<CallbackDetail> {
    return this.get(`/inbox/${encodeURIComponent(id)}`);
  }

  replay(id: string): Promise<Replay> {
    return this.post(`/inbox/${encodeURIComponent(id)}/replay`);
  }

  async testInbox(): Promise<InboxTest[]> {
    return (await this.post<Page<InboxTest>>("/inbox/test")).items;
  }

  send(agent: string, text: string): Promise<SendOutcome> {
    return this.post(`${agentPath(agent)}/send`, { text });
  }

  watch(agent: string, taskId: string): Promise<TaskSummary> {
    return this.post(`${agentPath(agent)}/watch`, { taskId });
  }

  snooze(task: string, minutes: number): Promise<TaskSummary> {
    return this.post(`${taskPath(task)}/snooze`, { minutes });
  }

  testNotice(): Promise<Notice> {
    return this.post("/notices/test");
  }

  health(): Promise<Health> {
    return this.get("/health");
  }
}
