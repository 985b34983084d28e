/** What can be done with the task that is shown. */
import type { TaskSummary } from "../api/types";
import type { App } from "../state/app";
import { isTerminal } from "../state/words";
import type { Command } from "./registry";

export function taskCommands({ model, view, actions }: App): Command[] {
  const task = (): TaskSummary | undefined =>
    !view.showsTasks || view.task === null ? undefined : model.known(view.task);
  const withTask = (run: (task: TaskSummary) => void) => (): void => {
    const chosen = task();
    if (chosen) run(chosen);
  };
  const hasTask = (): boolean => task() !== undefined;
  const isOpen = (): boolean => {
    const chosen = task();
    return chosen !== undefined && !isTerminal(chosen.state);
  };
  const command = (
    id: string,
    title: string,
    key: string | null,
    when: () => boolean,
    run: (task: TaskSummary) => void,
  ): Command => ({
    id,
    title,
    group: "Task",
    keys: key === null ? [] : [key],
    when,
    run: withTask(run),
  });

  return [
    command("reply", "Reply", "r", isOpen, (chosen) => (view.replyWanted = chosen.task)),
    command("reconcile", "Reconcile: read the task now", "Shift+r", hasTask, (chosen) => {
      void actions.reconcile(chosen.task);
    }),
    command("watch", "Watch, or stop watching", "w", isOpen, (chosen) => void actions.toggleFollow(chosen)),
    command("cancel", "Cancel the task…", "x", isOpen, (chosen) => {
      view.dialog = { name: "cancel", task: chosen.task };
    }),
    command(
      "snooze",
      "Snooze until…",
      "s",
      () => {
        const chosen = task();
        return chosen !== undefined && (chosen.needsYou || chosen.snoozedUntil != null);
      },
      (chosen) => (view.dialog = { name: "snooze", task: chosen.task }),
    ),
    command("mute", "Mute or unmute its notices", "m", hasTask, (chosen) => void actions.toggleMute(chosen)),
    command("pin", "Pin or unpin", "p", hasTask, (chosen) => void actions.togglePin(chosen)),
    command("archive", "Archive, or take out of the archive", "e", hasTask, (chosen) => {
      void actions.toggleArchive(chosen);
    }),
    command("note", "Write a note on the task", null, hasTask, (chosen) => (view.noteWanted = chosen.task)),
    command(
      "copy",
      "Copy the task's id",
      "y",
      hasTask,
      (chosen) => void actions.copy(chosen.task, "Task id"),
    ),
    command("export", "Export the task…", null, hasTask, (chosen) => {
      view.dialog = { name: "export", task: chosen.task };
    }),
    {
      id: "copy-curl",
      title: "Copy as curl, secrets masked",
      group: "Task",
      keys: ["Shift+y"],
      when: () => hasTask() || (view.screen === "inbox" && view.callback !== null),
      run: () => {
        const chosen = task();
        if (chosen) void actions.copyTaskAsCurl(chosen);
        else if (view.callback !== null) void actions.copyCallbackAsCurl(view.callback);
      },
    },
  ];
}
