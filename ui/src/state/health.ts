/** How the parts of the engine stand, and what a click can do where one needs a look. Pure. */
import type { HealthItem } from "../api/types";

/** What helps: something the page can do, or a place where it can be done. */
export type Help =
  | { does: "test-agent"; label: string; agent: string }
  | { does: "credential"; label: string; agent: string }
  | { does: "test-inbox"; label: string }
  | { does: "test-notice"; label: string }
  | { does: "settings"; label: string; section: "address" | "storage" | "security" | "notices" }
  | { does: "gateway"; label: string };

/** The agent that a component is, by its name; null where it is a part of the engine. */
export function agentOf(component: string): string | null {
  return /^agent[ :](.+)$/.exec(component)?.[1] ?? null;
}

export function helpFor(item: HealthItem): Help | null {
  const agent = agentOf(item.component);
  if (agent !== null) return { does: "test-agent", label: "Test it now", agent };
  switch (item.component) {
    case "inbox":
      return { does: "test-inbox", label: "Send a test callback" };
    case "public address":
    case "tunnel":
      return { does: "settings", label: "Public address…", section: "address" };
    case "store":
    case "backup":
    case "log":
      return item.state === "ok" ? null : { does: "settings", label: "Storage…", section: "storage" };
    case "keyring":
      return { does: "settings", label: "Security…", section: "security" };
    case "notices":
      return { does: "test-notice", label: "Show a test notice" };
    case "targets":
    case "deliveries":
      return { does: "gateway", label: "Deliveries…" };
    default:
      return null;
  }
}

const WEIGHT = { bad: 0, warn: 1, ok: 2 } as const;

/** What needs a look first, otherwise as the engine has them. */
export function sorted(items: readonly HealthItem[]): HealthItem[] {
  return [...items].sort((one, other) => WEIGHT[one.state] - WEIGHT[other.state]);
}

export function stateWords(state: HealthItem["state"]): string {
  return state === "ok" ? "ok" : state === "warn" ? "needs a look" : "does not work";
}

/** The state of everything, in a sentence. */
export function summary(items: readonly HealthItem[]): string {
  const [bad, warn] = (["bad", "warn"] as const).map(
    (state) => items.filter((item) => item.state === state).length,
  );
  if (items.length === 0) return "Nothing is known of the engine yet.";
  if (bad === 0 && warn === 0) return `All ${String(items.length)} parts work.`;
  const said = [
    ...(bad ? [`${String(bad)} ${bad === 1 ? "part does" : "parts do"} not work`] : []),
    ...(warn ? [`${String(warn)} ${warn === 1 ? "needs" : "need"} a look`] : []),
  ];
  return `${said.join(", ")}; ${String(items.length - (bad ?? 0) - (warn ?? 0))} are well.`;
}
