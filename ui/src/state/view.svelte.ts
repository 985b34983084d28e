/** Where the user is: screen, task, agent, tab, and which dialog is open. The address keeps it, so a link leads there. */
import type { Caution } from "../api/types";
import type { SavedFile } from "../text/file";
import { ANY, type Filter } from "./list";

export type Screen = "needs-you" | "tasks" | "inbox" | "gateway" | "agents" | "health" | "settings";
export type Tab = "result" | "timeline" | "conversation" | "callbacks" | "raw";
export const TABS: readonly Tab[] = ["result", "timeline", "conversation", "callbacks", "raw"];

export type GatewayTab = "clients" | "traffic" | "deliveries";
export const GATEWAY_TABS: readonly GatewayTab[] = ["clients", "traffic", "deliveries"];

/** Of the settings. */
export type Section =
  "general" | "notices" | "address" | "storage" | "security" | "keys" | "appearance" | "about";
export const SECTIONS: readonly Section[] = [
  "general",
  "notices",
  "address",
  "storage",
  "security",
  "keys",
  "appearance",
  "about",
];

export type DialogName =
  | { name: "palette"; group?: "Task" }
  | { name: "keys" }
  | { name: "start"; agent?: string }
  | { name: "watch"; agent?: string; taskId?: string }
  | { name: "add-agent" }
  | { name: "credential"; agent: string }
  | { name: "remove-agent"; agent: string }
  | { name: "new-client" }
  | { name: "revoke-client"; client: string }
  | { name: "allow-target" }
  | { name: "remove-target"; id: number; target: string }
  | { name: "cancel"; task: string }
  | { name: "snooze"; task: string }
  | { name: "export"; task: string }
  | { name: "save-view"; screen: "tasks" | "inbox"; query: string }
  | { name: "save"; file: SavedFile }
  | { name: "link"; url: string; cautions: readonly Caution[] };

export interface Toast {
  id: number;
  text: string;
  kind: "info" | "error";
  action?: { label: string; run: () => void };
}

export class View {
  screen = $state<Screen>("tasks");
  task = $state<string | null>(null);
  agent = $state<string | null>(null);
  /** The row of the inbox that is shown. */
  callback = $state<string | null>(null);
  gatewayTab = $state<GatewayTab>("clients");
  section = $state<Section>("general");
  /** The tab that is shown; {@link tabWanted} asks for another one. */
  tab = $state<Tab>("timeline");
  tabWanted = $state<Tab | null>(null);
  /** So many tabs on from the one that the callback's pane shows. */
  partWanted = $state<number | null>(null);
  filter = $state<Filter>({ ...ANY });
  /** What the inbox is searched for. */
  inboxSearch = $state("");
  dialog = $state<DialogName | null>(null);
  toasts = $state<Toast[]>([]);
  /** The task whose reply field is to have the focus. Who gives it takes the wish back, here and below. */
  replyWanted = $state<string | null>(null);
  /** The task whose note is to be written. */
  noteWanted = $state<string | null>(null);
  searchWanted = $state(false);
  /** The pane is to have the focus. */
  paneWanted = $state(false);
  /** A task that an address or an action named: it is shown even where no list has it. */
  asked = $state<string | null>(null);
  /** The user has chosen where to be. */
  went = false;
  private nextToast = 1;

  /** Goes where the address says. Links only navigate: nothing here starts an action. */
  readAddress(hash: string): void {
    const [, screen, ...rest] = hash.split("/");
    if (screen !== undefined) this.went = true;
    const decode = (text: string): string => {
      try {
        return decodeURIComponent(text);
      } catch {
        return text;
      }
    };
    if (screen === "needs-you" || screen === "tasks") {
      this.screen = screen;
      const task = rest.map(decode).join("/");
      if (task.includes("/")) this.asked = this.task = task;
    } else if (screen === "inbox") {
      this.screen = "inbox";
      if (rest[0]) this.callback = decode(rest[0]);
    } else if (screen === "gateway") {
      this.screen = "gateway";
      this.gatewayTab = GATEWAY_TABS.find((tab) => tab === rest[0]) ?? this.gatewayTab;
    } else if (screen === "agents") {
      this.screen = "agents";
      if (rest[0]) this.agent = decode(rest[0]);
    } else if (screen === "health") {
      this.screen = "health";
    } else if (screen === "settings") {
      this.screen = "settings";
      this.section = SECTIONS.find((section) => section === rest[0]) ?? this.section;
    }
  }

  get address(): string {
    if (this.screen === "inbox") {
      return `#/inbox${this.callback === null ? "" : `/${encodeURIComponent(this.callback)}`}`;
    }
    if (this.screen === "gateway") return `#/gateway/${this.gatewayTab}`;
    if (this.screen === "agents") {
      return `#/agents${this.agent === null ? "" : `/${encodeURIComponent(this.agent)}`}`;
    }
    if (this.screen === "settings") return `#/settings/${this.section}`;
    if (this.screen === "health" || this.task === null) return `#/${this.screen}`;
    const slash = this.task.indexOf("/");
    const [agent, id] = [this.task.slice(0, slash), this.task.slice(slash + 1)];
    return `#/${this.screen}/${encodeURIComponent(agent)}/${encodeURIComponent(id)}`;
  }

  /** Whether the screen is one of tasks, so that the chosen task is what is shown. */
  get showsTasks(): boolean {
    return this.screen === "needs-you" || this.screen === "tasks";
  }

  go(screen: Screen): void {
    this.screen = screen;
    this.asked = null;
    this.went = true;
  }

  openTask(task: string): void {
    this.went = true;
    if (!this.showsTasks) this.screen = "tasks";
    this.asked = this.task = task;
  }

  openSettings(section: Section): void {
    this.screen = "settings";
    this.section = section;
  }

  openCallback(id: string): void {
    this.screen = "inbox";
    this.callback = id;
  }

  say(text: string, kind: Toast["kind"] = "info", action?: Toast["action"]): void {
    const toast: Toast = { id: this.nextToast, text, kind, ...(action ? { action } : {}) };
    this.nextToast += 1;
    this.toasts = [...this.toasts.slice(-2), toast];
    setTimeout(
      () => {
        this.dismiss(toast.id);
      },
      kind === "error" || action ? 10_000 : 5_000,
    );
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((toast) => toast.id !== id);
  }
}
