/** The API's operations as functions: paths and bodies stand here and nowhere else. */
import type { Host } from "../host/host";
import type { components } from "./schema";
import type {
  Agent,
  AgentTest,
  Callback,
  CallbackDetail,
  Client,
  Credential,
  Delivery,
  Export,
  ExportFormat,
  Health,
  HealthAction,
  HealthChange,
  InboxTest,
  NewAgent,
  NewClient,
  Notice,
  Page,
  Quiet,
  ReconcileItem,
  Rendered,
  Replay,
  ReportCard,
  SavedView,
  SelfTestItem,
  SendOutcome,
  Setting,
  SettingChange,
  SettingsFile,
  Target,
  TaskDetail,
  TaskSummary,
  Traffic,
} from "./types";

/** `AGENT/TASKID` as a path. A task's id may hold anything, also slashes. */
export function taskPath(task: string): string {
  const slash = task.indexOf("/");
  return `/tasks/${encodeURIComponent(task.slice(0, slash))}/${encodeURIComponent(task.slice(slash + 1))}`;
}

const agentPath = (agent: string): string => `/agents/${encodeURIComponent(agent)}`;

function paramsOf(query: object): string {
  return new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
}

export interface TaskQuery {
  /** Words and keys, as the search field takes them. */
  q?: string;
  open?: boolean;
  agent?: string;
  state?: string;
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
    return this.get(`/tasks?${paramsOf(query)}`);
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

  muteTask(task: string, muted: boolean): Promise<TaskSummary> {
    return this.put(`${taskPath(task)}/mute`, { muted });
  }

  /** An empty text takes the note away. */
  noteTask(task: string, text: string): Promise<TaskSummary> {
    return this.put(`${taskPath(task)}/note`, { text });
  }

  exportTask(task: string, format: ExportFormat): Promise<Export> {
    return this.get(`${taskPath(task)}/export?format=${format}`);
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

  inbox(
    query: { q?: string; limit?: number; cursor?: string; task?: string; verdict?: string } = {},
  ): Promise<Page<Callback>> {
    return this.get(`/inbox?${paramsOf(query)}`);
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

  async clients(): Promise<Client[]> {
    return (await this.get<Page<Client>>("/clients")).items;
  }

  /** The only answer that ever holds the client's key. */
  addClient(name: string): Promise<NewClient> {
    return this.post("/clients", { name });
  }

  revokeClient(name: string): Promise<unknown> {
    return this.host.request("DELETE", `/clients/${encodeURIComponent(name)}`);
  }

  traffic(query: { limit?: number; cursor?: string } = {}): Promise<Page<Traffic>> {
    return this.get(`/gateway/traffic?${paramsOf(query)}`);
  }

  async targets(): Promise<Target[]> {
    return (await this.get<Page<Target>>("/targets")).items;
  }

  allowTarget(client: string, port: number): Promise<Target> {
    return this.post("/targets", { client, port });
  }

  removeTarget(id: number): Promise<unknown> {
    return this.host.request("DELETE", `/targets/${String(id)}`);
  }

  pauseTarget(id: number): Promise<Target> {
    return this.post(`/targets/${String(id)}/pause`);
  }

  resumeTarget(id: number): Promise<Target> {
    return this.post(`/targets/${String(id)}/resume`);
  }

  deliveries(query: { limit?: number; cursor?: string; task?: string } = {}): Promise<Page<Delivery>> {
    return this.get(`/deliveries?${paramsOf(query)}`);
  }

  retryDelivery(id: number): Promise<Delivery> {
    return this.post(`/deliveries/${String(id)}/retry`);
  }

  send(agent: string, text: string): Promise<SendOutcome> {
    return this.post(`${agentPath(agent)}/send`, { text });
  }

  watch(agent: string, taskId: string): Promise<TaskSummary> {
    return this.post(`${agentPath(agent)}/watch`, { taskId });
  }

  snooze(task: string, until: Date): Promise<TaskSummary> {
    return this.post(`${taskPath(task)}/snooze`, { until: until.toISOString() });
  }

  wake(task: string): Promise<TaskSummary> {
    return this.host.request("DELETE", `${taskPath(task)}/snooze`) as Promise<TaskSummary>;
  }

  async views(): Promise<SavedView[]> {
    const of = (screen: string): Promise<Page<SavedView>> => this.get(`/views?screen=${screen}`);
    return (await Promise.all([of("tasks"), of("inbox")])).flatMap((page) => page.items);
  }

  saveView(screen: string, name: string, query: string): Promise<SavedView> {
    return this.put(`/views/${screen}/${encodeURIComponent(name)}`, { query });
  }

  forgetView(screen: string, name: string): Promise<unknown> {
    return this.host.request("DELETE", `/views/${screen}/${encodeURIComponent(name)}`);
  }

  async settings(): Promise<Setting[]> {
    return (await this.get<Page<Setting>>("/settings")).items;
  }

  setSetting(key: string, value: string): Promise<Setting> {
    return this.put(`/settings/${encodeURIComponent(key)}`, { value });
  }

  unsetSetting(key: string): Promise<Setting> {
    return this.host.request("DELETE", `/settings/${encodeURIComponent(key)}`) as Promise<Setting>;
  }

  testNotice(): Promise<Notice> {
    return this.post("/notices/test");
  }

  notices(limit: number): Promise<Page<Notice>> {
    return this.get(`/notices?${paramsOf({ limit })}`);
  }

  quiet(): Promise<Quiet> {
    return this.get("/quiet");
  }

  quietFor(wanted: { minutes: number } | { until: "tomorrow" }): Promise<Quiet> {
    return this.put("/quiet", wanted);
  }

  endQuiet(): Promise<Quiet> {
    return this.host.request("DELETE", "/quiet") as Promise<Quiet>;
  }

  async healthHistory(limit: number): Promise<HealthChange[]> {
    return (await this.get<Page<HealthChange>>(`/health/history?${paramsOf({ limit })}`)).items;
  }

  async selfTest(): Promise<SelfTestItem[]> {
    return (await this.post<Page<SelfTestItem>>("/health/self-test")).items;
  }

  /** What helps, as the engine names it: an operation of its own API with all that it takes. */
  help(action: HealthAction): Promise<unknown> {
    const method = (["GET", "POST", "PUT", "DELETE"] as const).find((one) => one === action.method);
    if (!method) return Promise.reject(new Error(`the engine named the method ${action.method}`));
    return this.host.request(method, action.path.replace(/^\/api\/v1/, ""));
  }

  exportSettings(): Promise<SettingsFile> {
    return this.get("/settings/export");
  }

  /** Answers what changes; with `dry` nothing is changed. */
  async importSettings(file: unknown, dry: boolean): Promise<SettingChange[]> {
    return (await this.post<Page<SettingChange>>(`/settings/import?dry=${String(dry)}`, file)).items;
  }

  health(): Promise<Health> {
    return this.get("/health");
  }
}
