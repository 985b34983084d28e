import { expect, test } from "vitest";
import type { Change, TaskSummary } from "../api/types";
import { dropTask, NO_ROWS, putTasks, replaceTasks, takeChanges } from "./rows";

export function task(id: string, more: Partial<TaskSummary> = {}): TaskSummary {
  return {
    task: `demo/${id}`,
    agent: "demo",
    id,
    contextId: null,
    title: `Title of ${id}`,
    state: "working",
    rawState: "TASK_STATE_WORKING",
    question: null,
    words: null,
    following: { mode: "stream", since: "2026-01-02T10:00:00.000Z", attempt: 0, trouble: null },
    lastConfirmed: { at: "2026-01-02T10:00:00.000Z", by: "stream" },
    needsYou: false,
    needsSignIn: false,
    settled: false,
    createdAt: "2026-01-02T09:00:00.000Z",
    updatedAt: "2026-01-02T10:00:00.000Z",
    terminalAt: null,
    waitingSince: null,
    repliedAt: null,
    pinned: false,
    archived: false,
    source: "send",
    ...more,
  };
}

function change(seq: number, more: Record<string, unknown> = {}): Change {
  return {
    seq,
    at: "2026-01-02T10:00:00.000Z",
    task: "demo/a",
    agent: "demo",
    source: "stream",
    kind: "status",
    ...more,
  } as unknown as Change;
}

test("a change seen twice does nothing", () => {
  const first = takeChanges(NO_ROWS, [change(7, { text: "Reading" })]);
  expect([...first.outdated.tasks]).toEqual(["demo/a"]);
  const again = takeChanges(first.rows, [change(7, { text: "Reading" }), change(6)]);
  expect(again.rows).toBe(first.rows);
  expect(again.outdated).toEqual({ tasks: new Set(), rest: false });
});

test("the newest words of the agent are kept by task", () => {
  const { rows } = takeChanges(NO_ROWS, [
    change(1, { text: "one" }),
    change(2, { text: "two" }),
    change(3, { text: "" }),
  ]);
  expect(rows.words.get("demo/a")?.text).toBe("two");
  expect(NO_ROWS.words.size).toBe(0);
});

test("a task that was deleted leaves at once and is not asked for", () => {
  const rows = putTasks(NO_ROWS, [task("a"), task("b")]);
  const gone = takeChanges(rows, [change(1), change(2, { kind: "task", task: null, deleted: "demo/a" })]);
  expect([...gone.rows.byRef.keys()]).toEqual(["demo/b"]);
  expect(gone.outdated.tasks.size).toBe(0);
});

test("a change of no task asks for the agents", () => {
  expect(takeChanges(NO_ROWS, [change(1, { task: null, kind: "sweep" })]).outdated.rest).toBe(true);
  for (const kind of ["delivery", "target"]) {
    // Nothing of the lists of tasks and agents shows them.
    expect(takeChanges(NO_ROWS, [change(1, { task: null, kind })]).outdated.rest).toBe(false);
  }
});

test("an archived task leaves the rows, and comes back when it is taken out", () => {
  const rows = putTasks(NO_ROWS, [task("a")]);
  expect(putTasks(rows, [task("a", { archived: true })]).byRef.size).toBe(0);
  expect(putTasks(NO_ROWS, [task("a", { archived: false })]).byRef.size).toBe(1);
});

test("the whole list replaces what was known, a part of it does not", () => {
  const rows = putTasks(NO_ROWS, [task("a"), task("b")]);
  expect([...replaceTasks(rows, [task("c")]).byRef.keys()]).toEqual(["demo/c"]);
  expect(putTasks(rows, [task("c")]).byRef.size).toBe(3);
  expect(dropTask(rows, "demo/zzz")).toBe(rows);
});
