/** The commands of the page: one list for palette, keys and key sheet. */
import type { App } from "../state/app";
import { GATEWAY_TABS, TABS, type Screen } from "../state/view.svelte";
import { isTerminal } from "../state/words";
import type { TaskSummary } from "../api/types";
import type { Command } from "./registry";

/** What the screen that is shown can do with keys. */
export interface Lists {
  move: (by: number) => void;
}

export function allCommands({ model, view, actions }: App, lists: () => Lists | undefined): Command[] {
  const task = (): TaskSummary | undefined =>
    !view.showsTasks || view.task === null ? undefined : model.rows.byRef.get(view.task);
  const withTask = (run: (task: TaskSummary) => void) => (): void => {
    const chosen = task();
    if (chosen) run(chosen);
  };
  const hasTask = (): boolean => task() !== undefined;
  const hasTabs = (): boolean => hasTask() || view.screen === "gateway";
  const isOpen = (): boolean => {
    const chosen = task();
    return chosen !== undefined && !isTerminal(chosen.state);
  };
  const always = (): boolean => true;
  const hasAgent = (): boolean => model.agents.length > 0;
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
  const tab = (by: number) => (): void => {
    if (view.screen === "gateway") {
      const at = GATEWAY_TABS.indexOf(view.gatewayTab);
      view.gatewayTab =
        GATEWAY_TABS[(at + by + GATEWAY_TABS.length) % GATEWAY_TABS.length] ?? view.gatewayTab;
      return;
    }
    const at = TABS.indexOf(view.tab);
    view.tabWanted = TABS[(at + by + TABS.length) % TABS.length] ?? null;
  };
  const move = (id: string, title: string, keys: string[], by: number): Command => ({
    id,
    title,
    group: "Go",
    keys,
    when: () => lists() !== undefined,
    run: () => lists()?.move(by),
    quiet: true,
  });

  return [
    go("needs-you", "Needs you", "Mod+1"),
    go("tasks", "Tasks", "Mod+2"),
    go("inbox", "Inbox", "Mod+3"),
    go("gateway", "Gateway", "Mod+4"),
    go("agents", "Agents", "Mod+5"),
    move("next", "Next row", ["j", "ArrowDown"], 1),
    move("previous", "Previous row", ["k", "ArrowUp"], -1),
    {
      id: "open",
      title: "Open the chosen row",
      group: "Go",
      keys: ["Enter"],
      when: always,
      run: () => (view.paneWanted = true),
      quiet: true,
    },
    {
      id: "search",
      title: "Search tasks",
      group: "Go",
      keys: ["/"],
      when: always,
      run: () => {
        view.go("tasks");
        view.searchWanted = true;
      },
    },
    {
      id: "reply",
      title: "Reply",
      group: "Task",
      keys: ["r"],
      when: isOpen,
      run: () => (view.replyWanted = view.task),
    },
    {
      id: "reconcile",
      title: "Reconcile: read the task now",
      group: "Task",
      keys: ["Shift+r"],
      when: hasTask,
      run: withTask((chosen) => void actions.reconcile(chosen.task)),
    },
    {
      id: "watch",
      title: "Pause following, or follow again",
      group: "Task",
      keys: ["w"],
      when: isOpen,
      run: withTask((chosen) => void actions.toggleFollow(chosen)),
    },
    {
      id: "cancel",
      title: "Cancel the task…",
      group: "Task",
      keys: ["x"],
      when: isOpen,
      run: withTask((chosen) => (view.dialog = { name: "cancel", task: chosen.task })),
    },
    {
      id: "snooze",
      title: "Snooze its notice for an hour",
      group: "Task",
      keys: ["s"],
      when: () => task()?.needsYou === true,
      run: withTask((chosen) => void actions.snooze(chosen.task)),
    },
    {
      id: "pin",
      title: "Pin or unpin",
      group: "Task",
      keys: ["p"],
      when: hasTask,
      run: withTask((chosen) => void actions.togglePin(chosen)),
    },
    {
      id: "archive",
      title: "Archive",
      group: "Task",
      keys: ["e"],
      when: hasTask,
      run: withTask((chosen) => void actions.archive(chosen)),
    },
    {
      id: "copy",
      title: "Copy the task's name",
      group: "Task",
      keys: ["y"],
      when: hasTask,
      run: withTask((chosen) => void actions.copy(chosen.task, "Task name")),
    },
    {
      id: "tab-previous",
      title: "Previous tab",
      group: "View",
      keys: ["["],
      when: hasTabs,
      run: tab(-1),
      quiet: true,
    },
    {
      id: "tab-next",
      title: "Next tab",
      group: "View",
      keys: ["]"],
      when: hasTabs,
      run: tab(1),
      quiet: true,
    },
    {
      id: "start",
      title: "Start a task…",
      group: "Start",
      keys: ["n"],
      when: hasAgent,
      run: () => (view.dialog = { name: "start" }),
    },
    {
      id: "watch-id",
      title: "Watch a task by its id…",
      group: "Start",
      keys: [],
      when: hasAgent,
      run: () => (view.dialog = { name: "watch" }),
    },
    {
      id: "add-agent",
      title: "Add my agent…",
      group: "Start",
      keys: [],
      when: always,
      run: () => (view.dialog = { name: "add-agent" }),
    },
    {
      id: "new-client",
      title: "New client key…",
      group: "Start",
      keys: [],
      when: always,
      run: () => (view.dialog = { name: "new-client" }),
    },
    {
      id: "demo",
      title: "Try the demo",
      group: "Start",
      keys: [],
      when: () => model.agents.some((agent) => agent.name === "demo"),
      run: () => void actions.tryDemo(),
    },
    {
      id: "reconcile-all",
      title: "Reconcile all open tasks now",
      group: "Start",
      keys: ["Mod+Shift+r"],
      when: always,
      run: () => void actions.reconcileAll(),
    },
    {
      id: "test-inbox",
      title: "Send the inbox a test callback",
      group: "Start",
      keys: [],
      when: always,
      run: () => void actions.testInbox(),
    },
    {
      id: "test-notice",
      title: "Show a test notice",
      group: "View",
      keys: [],
      when: always,
      run: () => void actions.testNotice(),
    },
    {
      id: "health",
      title: "Health: what works, and what needs a look",
      group: "View",
      keys: [],
      when: always,
      run: () => (view.dialog = { name: "health" }),
    },
    {
      id: "palette",
      title: "Commands",
      group: "View",
      keys: ["Mod+k"],
      when: always,
      run: () => (view.dialog = { name: "palette" }),
      quiet: true,
    },
    {
      id: "keys",
      title: "Keys",
      group: "View",
      keys: ["?"],
      when: always,
      run: () => (view.dialog = { name: "keys" }),
    },
  ];
}
