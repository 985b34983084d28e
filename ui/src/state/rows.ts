/**
 * The tasks that the page knows, and what the change feed does to them. Pure.
 *
 * A change never edits a row by itself: it says which rows are out of date, and the engine is asked for those.
 * So a change seen twice, late or in the wrong order cannot make a row wrong.
 */
import type { Change, TaskSummary } from "../api/types";

/** The newest words of a task's agent, as far as the feed told. */
export interface Words {
  text: string;
  at: string;
}

export interface Rows {
  readonly byRef: ReadonlyMap<string, TaskSummary>;
  readonly words: ReadonlyMap<string, Words>;
  /** The newest change seen. */
  readonly seq: number;
}

export const NO_ROWS: Rows = { byRef: new Map(), words: new Map(), seq: 0 };

/** What a batch of changes asks for. */
export interface Outdated {
  tasks: Set<string>;
  /** An agent, or something of no task. */
  rest: boolean;
}

/** Takes changes in. Those seen before are skipped; with nothing new the same rows come back. */
export function takeChanges(rows: Rows, changes: readonly Change[]): { rows: Rows; outdated: Outdated } {
  const outdated: Outdated = { tasks: new Set(), rest: false };
  let { byRef, words, seq } = rows;
  for (const change of changes) {
    if (change.seq <= seq) continue;
    seq = change.seq;
    const deleted = change["deleted"];
    if (change.kind === "task" && typeof deleted === "string") {
      if (byRef.has(deleted)) byRef = without(byRef, deleted);
      outdated.tasks.delete(deleted);
    } else if (change.task) {
      outdated.tasks.add(change.task);
      const text = change["text"];
      if (change.kind === "status" && typeof text === "string" && text !== "") {
        if (words === rows.words) words = new Map(words);
        (words as Map<string, Words>).set(change.task, { text, at: change.at });
      }
    } else if (change.kind !== "delivery" && change.kind !== "target") {
      outdated.rest = true;
    }
  }
  return { rows: seq === rows.seq ? rows : { byRef, words, seq }, outdated };
}

/** Puts answers of the engine in place. An archived task leaves the rows. */
export function putTasks(rows: Rows, tasks: readonly TaskSummary[]): Rows {
  const byRef = new Map(rows.byRef);
  for (const task of tasks) {
    if (task.archived) byRef.delete(task.task);
    else byRef.set(task.task, task);
  }
  return { ...rows, byRef };
}

/** The engine's whole list: what is not in it is gone. */
export function replaceTasks(rows: Rows, tasks: readonly TaskSummary[]): Rows {
  return { ...rows, byRef: new Map(tasks.map((task) => [task.task, task])) };
}

export function dropTask(rows: Rows, task: string): Rows {
  return rows.byRef.has(task) ? { ...rows, byRef: without(rows.byRef, task) } : rows;
}

function without(byRef: ReadonlyMap<string, TaskSummary>, task: string): Map<string, TaskSummary> {
  const next = new Map(byRef);
  next.delete(task);
  return next;
}
