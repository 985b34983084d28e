/** What the user can do. Each says what came of it; a failure says what it means for the task. */
import { CallError } from "../host/host";
import type { Credential, ExportFormat, NewAgent, ReconcileItem, TaskSummary } from "../api/types";
import { taskAsCurl } from "../agents/curl";
import { asCurl } from "./inbox";
import type { Model } from "./model.svelte";
import type { View } from "./view.svelte";
import { asFile, sortedOut } from "../text/exported";
import { save } from "../text/save";
import { noticeTest } from "./selftest";
import { isTerminal, stateWord } from "./words";

/** The built-in agent, and a text that makes it work, ask once, lose its connection and finish. */
export const DEMO_AGENT = "demo";
export const DEMO_TEXT = [
  "Try Taskbell: work, ask me once, lose the connection, finish",
  "steps=8 interval=1 ask=3 cut=6 chunks=1",
  `body=${encodeURIComponent(
    "# It worked\n\nThe task **asked once**, its connection was cut on purpose, and it was followed to the end.\n\n" +
      "- The question waited under *Needs you*.\n- The cut is drawn in the *Timeline*.\n- This answer was read from the agent itself.\n\n" +
      "Next: add your own agent by its card address, or paste the `curl` line that you call it with.\n",
  )}`,
  `say=${encodeURIComponent("Done. The connection was cut once on the way, and nothing was lost.")}`,
].join("\n");

export function messageOf(error: unknown): string {
  return error instanceof Error ? sentence(error.message) : "That did not work.";
}

/** Messages of the engine are lower-case fragments. */
export function sentence(text: string): string {
  const start = text.charAt(0).toLocaleUpperCase() + text.slice(1);
  return /[.!?…]$/.test(start) ? start : `${start}.`;
}

export class Actions {
  constructor(
    private readonly model: Model,
    private readonly view: View,
  ) {}

  /** Runs a call; a failure becomes a toast. True when it went well. */
  private async attempt(call: () => Promise<void>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (error) {
      this.view.say(messageOf(error), "error");
      return false;
    }
  }

  /** Sends the answer once. What the caller typed is lost only when this answers true. */
  async reply(task: string, text: string): Promise<boolean> {
    try {
      this.model.put(await this.model.calls.reply(task, text));
      return true;
    } catch (error) {
      if (error instanceof CallError && error.code === "outcome_unknown") {
        this.view.say(
          "The answer left, but the agent did not say that it arrived. It is not sent again by itself.",
          "error",
          { label: "Reconcile", run: () => void this.reconcile(task) },
        );
      } else this.view.say(messageOf(error), "error");
      return false;
    }
  }

  async cancel(task: string): Promise<void> {
    await this.attempt(async () => {
      const after = await this.model.calls.cancelTask(task);
      this.model.put(after);
      if (after.state !== "canceled")
        this.view.say(`The task was not canceled: it is ${stateWord(after.state)}.`);
    });
  }

  async reconcile(task: string): Promise<void> {
    await this.attempt(async () => {
      const [item] = await this.model.calls.reconcile({ tasks: [task] });
      if (item) this.view.say(...reconciled(item));
    });
    await this.model.readAll();
  }

  async reconcileAll(): Promise<void> {
    await this.attempt(async () => {
      const items = await this.model.calls.reconcile({ all: true });
      const count = (verdict: ReconcileItem["verdict"]): number =>
        items.filter((item) => item.verdict === verdict).length;
      const [changed, away] = [count("changed"), count("unreachable")];
      const parts = [
        `${String(items.length - away)} of ${String(items.length)} open tasks read`,
        ...(changed > 0 ? [`${String(changed)} changed`] : []),
        ...(away > 0 ? [`${String(away)} agents did not answer; those tasks stay as last known`] : []),
      ];
      this.view.say(`${parts.join(", ")}.`, away > 0 ? "error" : "info");
    });
    await this.model.readAll();
  }

  async testAgent(name: string): Promise<void> {
    await this.attempt(async () => {
      const test = await this.model.calls.testAgent(name);
      const notes = test.notes.map(sentence).join(" ");
      this.view.say(
        `${name} ${test.reachable ? "answers" : "does not answer; its tasks stay as last known"}. ${notes}`.trim(),
        test.reachable ? "info" : "error",
      );
    });
    await this.model.readAll();
  }

  /** A callback of our own in each dialect, through the inbox's own socket. */
  async testInbox(): Promise<void> {
    await this.attempt(async () => {
      const tests = await this.model.calls.testInbox();
      const failed = tests.find((test) => !test.ok);
      if (failed) {
        const why = sentence(failed.error ?? "no reason was given");
        this.view.say(`The test callback of A2A ${failed.dialect} did not arrive. ${why}`, "error");
      } else {
        const took = Math.max(...tests.map((test) => test.tookMs));
        this.view.say(`Test callbacks of both dialects were taken and kept, within ${String(took)} ms.`);
      }
    });
  }

  /** Takes a client's key back. */
  async revokeClient(name: string): Promise<void> {
    await this.attempt(async () => {
      await this.model.calls.revokeClient(name);
      this.view.say(`The key of ${name} is taken back.`);
    });
    await this.model.gateway.read();
  }

  /** Changes something about the callbacks that leave, then reads how they stand. */
  private async dispatch(call: () => Promise<unknown>, done?: string): Promise<void> {
    await this.attempt(async () => {
      await call();
      if (done !== undefined) this.view.say(done);
    });
    await this.model.gateway.read();
  }

  pauseTarget(id: number): Promise<void> {
    return this.dispatch(
      () => this.model.calls.pauseTarget(id),
      "Paused. Ends and questions wait until it is resumed.",
    );
  }

  resumeTarget(id: number): Promise<void> {
    return this.dispatch(() => this.model.calls.resumeTarget(id), "Resumed. What waited is sent now.");
  }

  removeTarget(id: number): Promise<void> {
    return this.dispatch(() => this.model.calls.removeTarget(id));
  }

  retryDelivery(id: number): Promise<void> {
    return this.dispatch(() => this.model.calls.retryDelivery(id), "It is sent again now.");
  }

  async togglePin(task: TaskSummary): Promise<void> {
    await this.attempt(async () => {
      this.model.put(await this.model.calls.pinTask(task.task, !task.pinned));
    });
  }

  async toggleArchive(task: TaskSummary): Promise<void> {
    const to = !task.archived;
    await this.attempt(async () => {
      this.model.put(await this.model.calls.archiveTask(task.task, to));
      if (to && this.view.task === task.task) this.view.task = null;
      this.view.say(to ? "Archived. It stays followed until it ends." : "Taken out of the archive.", "info", {
        label: "Undo",
        run: () =>
          void this.attempt(async () => {
            this.model.put(await this.model.calls.archiveTask(task.task, !to));
          }),
      });
    });
  }

  async toggleMute(task: TaskSummary): Promise<void> {
    await this.attempt(async () => {
      this.model.put(await this.model.calls.muteTask(task.task, !task.muted));
      this.view.say(task.muted ? "Its notices are shown again." : "Muted: it shows no notices any more.");
    });
  }

  /** False where it was refused: what was written is not lost then. */
  note(task: string, text: string): Promise<boolean> {
    return this.attempt(async () => {
      this.model.put(await this.model.calls.noteTask(task, text));
    });
  }

  async toggleFollow(task: TaskSummary): Promise<void> {
    if (isTerminal(task.state)) {
      this.view.say("The task has ended: there is nothing left to follow.");
      return;
    }
    await this.attempt(async () => {
      const paused = task.following.mode === "paused";
      this.model.put(await this.model.calls.followTask(task.task, paused ? "on" : "paused"));
    });
  }

  /** A question that is put off leaves what needs the user, and comes back by itself with a notice. */
  async snooze(task: string, until: Date): Promise<void> {
    await this.attempt(async () => {
      this.model.put(await this.model.calls.snooze(task, until));
      this.view.say("Snoozed. The task still waits, and comes back then.", "info", {
        label: "Undo",
        run: () => void this.wake(task),
      });
    });
  }

  async wake(task: string): Promise<void> {
    await this.attempt(async () => {
      this.model.put(await this.model.calls.wake(task));
    });
  }

  async exportTask(task: string, format: ExportFormat): Promise<void> {
    await this.attempt(async () => {
      const { files, notFetched } = await this.model.calls.exportTask(task, format);
      // One's own document and archive run nothing; of an agent's files some may.
      const { plain, active } =
        format === "artifacts" ? sortedOut(files) : { plain: files.map(asFile), active: 0 };
      for (const file of plain) save(file.content(), file.name);
      const said = [
        plain.length === 0
          ? "There is no file to save."
          : `${plain.length === 1 ? (plain[0]?.name ?? "") : `${String(plain.length)} files`} saved.`,
        ...(active > 0 ? [`${String(active)} that may run something are only in the archive.`] : []),
        ...(notFetched.length > 0 ? [`${String(notFetched.length)} addresses were not fetched.`] : []),
      ];
      this.view.say(said.join(" "));
    });
  }

  /** Throws what the engine refused. */
  async saveView(screen: "tasks" | "inbox", name: string, query: string): Promise<void> {
    await this.model.calls.saveView(screen, name, query);
    await this.model.readViews();
  }

  async forgetView(screen: "tasks" | "inbox", name: string): Promise<void> {
    const before = this.model.views.find((one) => one.screen === screen && one.name === name);
    await this.attempt(async () => {
      await this.model.calls.forgetView(screen, name);
      await this.model.readViews();
      this.view.say(`The view ${name} is forgotten.`, "info", {
        label: "Undo",
        run: () =>
          void this.attempt(async () => {
            if (before) await this.saveView(screen, name, before.query);
          }),
      });
    });
  }

  async copyCallbackAsCurl(id: string): Promise<void> {
    await this.attempt(async () => {
      await this.copy(asCurl(await this.model.calls.callback(id)), "curl line, its secrets masked,");
    });
  }

  /** The line that reads the task at its agent. The credential is not in it: the page never has one. */
  async copyTaskAsCurl(task: TaskSummary): Promise<void> {
    const agent = this.model.agents.find((one) => one.name === task.agent);
    if (!agent) this.view.say("Its agent was removed: there is no address to ask.", "error");
    else await this.copy(taskAsCurl(task, agent), "curl line, its secrets masked,");
  }

  /** Shows a notice and says what came of it. */
  async testNotice(): Promise<void> {
    const { ok, text } = await noticeTest(this.model.calls);
    this.view.say(text, ok ? "info" : "error");
  }

  async copy(text: string, what: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.view.say(`${what} copied.`);
    } catch {
      this.view.say(`The system did not let ${what.toLowerCase()} be copied.`, "error");
    }
  }

  /** Starts a task. Answers what to say where no task came of it; throws what the engine refused. */
  async start(agent: string, text: string): Promise<string | null> {
    const outcome = await this.model.calls.send(agent, text);
    if ("task" in outcome) {
      await this.model.readAll();
      this.view.openTask(outcome.task);
      return null;
    }
    if ("message" in outcome) {
      const parts = (outcome.message as { parts?: { text?: unknown }[] } | null)?.parts ?? [];
      const words = parts.map((part) => (typeof part.text === "string" ? part.text : "")).join("\n");
      return `The agent answered at once and started no task: ${words}`;
    }
    return "The message left, but no answer came: the agent may have it or not. It is not sent again by itself.";
  }

  async tryDemo(): Promise<boolean> {
    return this.attempt(async () => {
      const said = await this.start(DEMO_AGENT, DEMO_TEXT);
      if (said !== null) this.view.say(said);
    });
  }

  async watch(agent: string, taskId: string): Promise<void> {
    const task = await this.model.calls.watch(agent, taskId);
    this.model.put(task);
    this.view.openTask(task.task);
  }

  async addAgent(agent: NewAgent): Promise<void> {
    const added = await this.model.calls.addAgent(agent);
    this.model.agents = await this.model.calls.agents();
    this.view.go("agents");
    this.view.agent = added.name;
  }

  async removeAgent(agent: string): Promise<void> {
    await this.attempt(async () => {
      await this.model.calls.removeAgent(agent);
      this.view.agent = null;
      await this.model.readAll();
    });
  }

  async setCredential(agent: string, credential: Credential): Promise<void> {
    await this.model.calls.setCredential(agent, credential);
    this.model.agents = await this.model.calls.agents();
  }

  async pinDialect(agent: string, dialect: string | null): Promise<void> {
    await this.attempt(async () => {
      await this.model.calls.pinDialect(agent, dialect);
      this.model.agents = await this.model.calls.agents();
    });
  }

  async importTasks(agent: string): Promise<void> {
    await this.attempt(async () => {
      const { adopted, known, unreadable } = await this.model.calls.importTasks(agent);
      const rest = unreadable > 0 ? `, ${String(unreadable)} could not be read` : "";
      this.view.say(
        `${String(adopted.length)} open tasks adopted, ${String(known)} were followed before${rest}.`,
      );
      await this.model.readAll();
    });
  }
}

function reconciled(item: ReconcileItem): [string, "info" | "error"] {
  switch (item.verdict) {
    case "unchanged":
      return [`Read now: unchanged, ${stateWord(item.after)}.`, "info"];
    case "changed":
      return [
        `Read now: ${stateWord(item.before)} → ${stateWord(item.after)}${item.missed ? ". No stream and no callback had told" : ""}.`,
        "info",
      ];
    case "lost":
      return ["The agent says it no longer knows this task.", "error"];
    case "wrong-identity":
      return ["The agent does not show this task to the credential it has now.", "error"];
    case "unreachable":
      return [
        `Not read: ${item.error ?? "the agent does not answer"}. The task is still ${stateWord(item.before)} as far as we know.`,
        "error",
      ];
  }
}
