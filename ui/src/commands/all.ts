/** The commands of the page: one list for palette, keys, key sheet and help. */
import type { App } from "../state/app";
import { GATEWAY_TABS, SECTIONS, TABS, type Screen } from "../state/view.svelte";
import type { Command, Group } from "./registry";
import { taskCommands } from "./task";

/** What the screen that is shown can do with keys. */
export interface Lists {
  move?: (by: number) => void;
}

/** The next of some words, and after the last one the first. */
function turned<T>(words: readonly T[], now: T, by: number): T {
  return words[(words.indexOf(now) + by + words.length) % words.length] ?? now;
}

export function allCommands(app: App, lists: () => Lists | undefined): Command[] {
  const { model, view, actions } = app;
  const always = (): boolean => true;
  const hasAgent = (): boolean => model.agents.length > 0;
  const hasRows = (): boolean => lists()?.move !== undefined;
  const hasTabs = (): boolean =>
    (view.showsTasks && view.task !== null) ||
    (view.screen === "inbox" && view.callback !== null) ||
    view.screen === "gateway" ||
    view.screen === "settings";
  const go = (screen: Screen, title: string, key: string): Command => ({
    id: `go-${screen}`,
    title,
    group: "Go",
    keys: [key],
    when: always,
    run: () => {
      view.go(screen);
    },
  });
  const turn = (by: number) => (): void => {
    if (view.screen === "gateway") view.gatewayTab = turned(GATEWAY_TABS, view.gatewayTab, by);
    else if (view.screen === "settings") view.section = turned(SECTIONS, view.section, by);
    else if (view.screen === "inbox") view.partWanted = by;
    else view.tabWanted = turned(TABS, view.tab, by);
  };
  const key = (
    id: string,
    title: string,
    keys: string[],
    when: () => boolean,
    run: () => void,
    group: Group = "Go",
  ): Command => ({ id, title, group, keys, when, run, quiet: true });
  const other = (
    id: string,
    title: string,
    group: Group,
    run: () => void,
    { keys = [], when = always }: { keys?: string[]; when?: () => boolean } = {},
  ): Command => ({ id, title, group, keys, when, run });

  return [
    go("needs-you", "Needs you", "Mod+1"),
    go("tasks", "Tasks", "Mod+2"),
    go("inbox", "Inbox", "Mod+3"),
    go("gateway", "Gateway", "Mod+4"),
    go("agents", "Agents", "Mod+5"),
    go("health", "Health: what works, and what needs a look", "Mod+6"),
    go("settings", "Settings", "Mod+,"),
    key("next", "Next row", ["j", "ArrowDown"], hasRows, () => lists()?.move?.(1)),
    key("previous", "Previous row", ["k", "ArrowUp"], hasRows, () => lists()?.move?.(-1)),
    key("open", "Open the chosen row", ["Enter"], hasRows, () => (view.paneWanted = true)),
    key("back", "Back to the list", ["Escape"], always, () => {
      document.querySelector<HTMLElement>('main [role=listbox][tabindex="0"]')?.focus();
    }),
    other(
      "search",
      "Search",
      "Go",
      () => {
        if (view.screen !== "inbox") view.go("tasks");
        view.searchWanted = true;
      },
      { keys: ["/"] },
    ),
    ...taskCommands(app),
    key("tab-previous", "Previous tab", ["["], hasTabs, turn(-1), "View"),
    key("tab-next", "Next tab", ["]"], hasTabs, turn(1), "View"),
    other("start", "Start a task…", "Start", () => (view.dialog = { name: "start" }), {
      keys: ["n"],
      when: hasAgent,
    }),
    other("watch-id", "Watch a task by its id…", "Start", () => (view.dialog = { name: "watch" }), {
      when: hasAgent,
    }),
    other("add-agent", "Add my agent…", "Start", () => (view.dialog = { name: "add-agent" })),
    other("new-client", "New client key…", "Start", () => (view.dialog = { name: "new-client" })),
    other("demo", "Try the demo", "Start", () => void actions.tryDemo(), {
      when: () => model.agents.some((agent) => agent.name === "demo"),
    }),
    other("reconcile-all", "Reconcile all open tasks now", "Start", () => void actions.reconcileAll(), {
      keys: ["Mod+Shift+r"],
    }),
    other("test-inbox", "Send the inbox a test callback", "Start", () => void actions.testInbox()),
    other("test-notice", "Show a test notice", "View", () => void actions.testNotice()),
    {
      ...other("palette", "Commands", "View", () => (view.dialog = { name: "palette" })),
      keys: ["Mod+k"],
      quiet: true,
    },
    other("keys", "Keys", "View", () => (view.dialog = { name: "keys" }), { keys: ["?"] }),
  ];
}
