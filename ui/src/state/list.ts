/** Which rows a list shows, in which order and under which headings. Pure. */
import type { TaskSummary } from "../api/types";
import { sameDay } from "../time/relative";
import { isTerminal } from "./words";

export type Span = "open" | "ended" | "all";

export interface Filter {
  span: Span;
  agent: string;
  state: string;
  /** Asked of the engine, which knows more tasks than the page: {@link queryOf}. */
  search: string;
}

export const ANY: Filter = { span: "all", agent: "", state: "", search: "" };

export type Entry =
  { kind: "heading"; key: string; text: string } | { kind: "task"; key: string; task: TaskSummary };

export function needsYou(task: TaskSummary): boolean {
  return task.needsYou || (task.needsSignIn && !isTerminal(task.state));
}

export function matches(task: TaskSummary, filter: Filter): boolean {
  const ended = isTerminal(task.state);
  if (filter.span === "open" && ended) return false;
  if (filter.span === "ended" && !ended) return false;
  if (filter.agent !== "" && task.agent !== filter.agent) return false;
  if (filter.state !== "" && task.state !== filter.state) return false;
  return true;
}

/** What the engine is asked for; empty where the rows that the page has are the answer. */
export function queryOf(filter: Filter): string {
  const search = filter.search.trim();
  if (search === "") return "";
  return [
    search,
    ...(filter.span === "open" ? ["is:open"] : []),
    ...(filter.span === "ended" ? ["-is:open"] : []),
    ...(filter.agent === "" ? [] : [`agent:${filter.agent}`]),
    ...(filter.state === "" ? [] : [`state:${filter.state}`]),
  ].join(" ");
}

function newestFirst(at: (task: TaskSummary) => string) {
  // The same form and the same zone, so the texts have the order of the times.
  return (one: TaskSummary, other: TaskSummary): number => {
    const [first, second] = [at(one), at(other)];
    if (first === second) return one.task < other.task ? -1 : 1;
    return first > second ? -1 : 1;
  };
}

/** The list of a screen: what waits first, then what runs, then what ended. */
export function entries(tasks: Iterable<TaskSummary>, filter: Filter, now: number): Entry[] {
  const groups: { text: string; tasks: TaskSummary[] }[] = [
    { text: "Waiting for you", tasks: [] },
    { text: "Running", tasks: [] },
    { text: "Ended today", tasks: [] },
    { text: "Ended earlier", tasks: [] },
  ];
  const [waiting, running, today, earlier] = groups.map((group) => group.tasks) as [
    TaskSummary[],
    TaskSummary[],
    TaskSummary[],
    TaskSummary[],
  ];
  const present = new Date(now);
  for (const task of tasks) {
    if (!matches(task, filter)) continue;
    if (needsYou(task)) waiting.push(task);
    else if (!isTerminal(task.state)) running.push(task);
    else if (sameDay(new Date(task.terminalAt ?? task.updatedAt), present)) today.push(task);
    else earlier.push(task);
  }
  waiting.sort((one, other) => -newestFirst((task) => task.waitingSince ?? task.following.since)(one, other));
  running.sort(newestFirst((task) => task.createdAt));
  for (const ended of [today, earlier]) ended.sort(newestFirst((task) => task.terminalAt ?? task.updatedAt));
  return groups.flatMap((group) =>
    group.tasks.length === 0
      ? []
      : [
          { kind: "heading" as const, key: `heading ${group.text}`, text: group.text },
          // A pinned task leads its group.
          ...[
            ...group.tasks.filter((task) => task.pinned),
            ...group.tasks.filter((task) => !task.pinned),
          ].map((task) => ({ kind: "task" as const, key: task.task, task })),
        ],
  );
}
