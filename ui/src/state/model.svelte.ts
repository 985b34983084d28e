/**
 * What the page knows of the engine, kept up to date: it listens first, then catches up.
 *
 * ```text
 * feed live ──▶ load everything ──▶ changes mark rows ──▶ the marked rows are read, at most every 200 ms
 * feed lost ──▶ what was known stays, with its age
 * ```
 */
import { Calls } from "../api/calls";
import type {
  Agent,
  Callback,
  Change,
  Health,
  SavedView,
  Setting,
  TaskDetail,
  TaskSummary,
} from "../api/types";
import { CallError, type FeedEvent, type Host, type Link } from "../host/host";
import { Found } from "./found.svelte";
import { GatewayRows } from "./gateway.svelte";
import { InboxRows } from "./inbox.svelte";
import { dropTask, NO_ROWS, putTasks, replaceTasks, takeChanges, type Rows } from "./rows";

const BATCH_MS = 200;
/** Reads that find nothing new are no changes, but they confirm: ages are read again this often. */
const AGES_MS = 10_000;
const PAGE = 1000;
const MOST_ROWS = 5000;

export type Listener = (task: string) => void;

export class Model {
  readonly calls: Calls;
  readonly inbox: InboxRows;
  readonly gateway: GatewayRows;
  /** What was searched for, in all that the engine keeps. */
  readonly foundTasks: Found<TaskSummary>;
  readonly foundCallbacks: Found<Callback>;
  /** Null until they were read: only the settings' screen needs them. */
  settings = $state.raw<readonly Setting[] | null>(null);
  /** The task that a pane has read: no list need have it. */
  opened = $state.raw<TaskDetail | null>(null);
  views = $state.raw<readonly SavedView[]>([]);
  rows = $state.raw<Rows>(NO_ROWS);
  agents = $state.raw<readonly Agent[]>([]);
  health = $state.raw<Health | null>(null);
  link = $state<Link>("connecting");
  /** When everything was last read from the engine, in milliseconds. */
  readAt = $state<number | null>(null);
  version = $state<string | null>(null);
  /** This window runs the engine because the one it was attached to has ended. */
  tookOver = $state(false);

  private pending: Change[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private ages: ReturnType<typeof setInterval> | undefined;
  private stopFeed: (() => void) | undefined;
  private readonly listeners = new Set<Listener>();
  private reading = false;

  constructor(readonly host: Host) {
    this.calls = new Calls(host);
    this.inbox = new InboxRows(this.calls);
    this.gateway = new GatewayRows(this.calls);
    this.foundTasks = new Found((query) => this.calls.tasks(query));
    this.foundCallbacks = new Found((query) => this.calls.inbox(query));
  }

  start(): () => void {
    this.stopFeed = this.host.onChanges((event) => {
      this.take(event);
    });
    // Told even where nothing else can be read.
    void this.readVersion();
    this.ages = setInterval(() => void this.readOpen(), AGES_MS);
    return () => {
      this.stopFeed?.();
      clearInterval(this.ages);
      clearTimeout(this.timer);
    };
  }

  /** Told of each task that changed, after its row was read. */
  onTask(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  put(...tasks: TaskSummary[]): void {
    this.rows = putTasks(this.rows, tasks);
    this.foundTasks.replace((found) => {
      const now = tasks.find((task) => task.task === found.task);
      return now ? { ...now, hit: found.hit ?? null } : found;
    });
  }

  /** The newest that is known of a task, also of one that only a search or its pane has shown. */
  known(task: string): TaskSummary | undefined {
    return (
      this.rows.byRef.get(task) ??
      this.foundTasks.items.find((one) => one.task === task) ??
      (this.opened?.task === task ? this.opened : undefined)
    );
  }

  private take(event: FeedEvent): void {
    switch (event.type) {
      case "link":
        this.link = event.link;
        if (event.link === "live") void this.readAll();
        break;
      case "reset":
        void this.readAll();
        break;
      case "took-over":
        this.tookOver = true;
        break;
      case "change":
        this.pending.push(event.change);
        this.timer ??= setTimeout(() => void this.flush(), BATCH_MS);
        break;
    }
  }

  private async flush(): Promise<void> {
    const changes = this.pending;
    this.pending = [];
    const { rows, outdated } = takeChanges(this.rows, changes);
    this.rows = rows;
    try {
      if (changes.some((change) => change.kind === "callback")) {
        void this.inbox.read();
        void this.foundCallbacks.read();
      }
      if (changes.some((change) => change.kind === "delivery" || change.kind === "target")) {
        void this.gateway.hear();
      }
      if (changes.some((change) => change.kind === "view")) await this.readViews();
      if (outdated.tasks.size > 0) {
        await this.readTasks(outdated.tasks);
        void this.foundTasks.read();
      }
      if (outdated.rest || changes.some((change) => change.kind === "following")) await this.readAgents();
    } catch (error) {
      this.fail(error);
    } finally {
      this.timer = this.pending.length > 0 ? setTimeout(() => void this.flush(), BATCH_MS) : undefined;
      for (const task of outdated.tasks) for (const listener of this.listeners) listener(task);
    }
  }

  /** The list has the newest update first, so what changed is at its head; the rest is asked for one by one. */
  private async readTasks(tasks: ReadonlySet<string>): Promise<void> {
    const page = await this.calls.tasks({ limit: Math.min(PAGE, tasks.size * 2 + 8) });
    await this.meetAgents(page.items);
    this.put(...page.items);
    const found = new Set(page.items.map((task) => task.task));
    const missing = [...tasks].filter((task) => !found.has(task));
    if (missing.length > 8) {
      this.rows = replaceTasks(this.rows, await this.readAllTasks());
      return;
    }
    await Promise.all(
      missing.map(async (task) => {
        try {
          this.put(await this.calls.task(task));
        } catch (error) {
          if (error instanceof CallError && error.status === 404) this.rows = dropTask(this.rows, task);
          else throw error;
        }
      }),
    );
  }

  /** A task of an agent that nobody knows would be shown as one of an agent that was removed. */
  private async meetAgents(tasks: readonly TaskSummary[]): Promise<void> {
    const known = new Set(this.agents.map((agent) => agent.name));
    if (tasks.some((task) => !known.has(task.agent))) await this.readAgents();
  }

  private async readAllTasks(): Promise<TaskSummary[]> {
    const all: TaskSummary[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await this.calls.tasks({ limit: PAGE, ...(cursor ? { cursor } : {}) });
      all.push(...page.items);
      cursor = page.next;
    } while (cursor && all.length < MOST_ROWS);
    return all;
  }

  private async readAgents(): Promise<void> {
    this.agents = await this.calls.agents();
  }

  async readSettings(): Promise<void> {
    this.settings = await this.calls.settings();
  }

  putSetting(setting: Setting): void {
    this.settings = (this.settings ?? []).map((one) => (one.key === setting.key ? setting : one));
  }

  async readViews(): Promise<void> {
    this.views = await this.calls.views();
  }

  private async readVersion(): Promise<void> {
    try {
      this.version = (await this.calls.version()).version;
    } catch {
      // The feed tells why nothing answers.
    }
  }

  async readAll(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      const [tasks, agents, health] = await Promise.all([
        this.readAllTasks(),
        this.calls.agents(),
        this.calls.health(),
        this.readVersion(),
        this.inbox.read(),
        this.gateway.read(),
        this.readViews(),
        this.foundTasks.read(),
        this.foundCallbacks.read(),
      ]);
      this.agents = agents;
      this.health = health;
      this.rows = replaceTasks(this.rows, tasks);
      this.readAt = Date.now();
    } catch (error) {
      this.fail(error);
    } finally {
      this.reading = false;
    }
  }

  private async readOpen(): Promise<void> {
    if (this.link !== "live" || document.hidden) return;
    try {
      const [page, health] = await Promise.all([
        this.calls.tasks({ open: true, limit: PAGE }),
        this.calls.health(),
        this.readAgents(),
      ]);
      this.put(...page.items);
      this.health = health;
      // Of a flood not every callback is told of.
      void this.inbox.read();
      this.readAt = Date.now();
    } catch (error) {
      this.fail(error);
    }
  }

  /** The feed tells of an engine that is gone; here only a session that has ended is news. */
  private fail(error: unknown): void {
    if (error instanceof CallError && error.status === 401) this.link = "signed-out";
    else if (!(error instanceof CallError)) throw error;
  }
}
