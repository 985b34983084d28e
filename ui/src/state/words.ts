/** What states, channels and codes are called in front of people. Pure. */
import type { FollowingMode, TaskState, TaskSummary } from "../api/types";
import { ago, clock, span } from "../time/relative";

export const STATES: readonly TaskState[] = [
  "submitted",
  "working",
  "input-required",
  "auth-required",
  "completed",
  "failed",
  "canceled",
  "rejected",
  "unknown",
  "lost",
  "wrong-identity",
];

export function stateWord(state: TaskState): string {
  switch (state) {
    case "submitted":
      return "submitted";
    case "working":
      return "working";
    case "input-required":
      return "needs input";
    case "auth-required":
      return "needs sign-in";
    case "completed":
      return "finished";
    case "failed":
      return "failed";
    case "canceled":
      return "canceled";
    case "rejected":
      return "rejected";
    case "unknown":
      return "unknown state";
    case "lost":
      return "lost";
    case "wrong-identity":
      return "wrong identity";
  }
}

/** The state as a sentence of the task's panel. */
export function stateMeaning(state: TaskState): string | null {
  switch (state) {
    case "lost":
      return "The agent says it no longer knows this task. What is shown is what was last known.";
    case "wrong-identity":
      return "The agent does not show this task to the credential it has now.";
    case "unknown":
      return "The agent used a word that A2A does not know. It counts as still open.";
    default:
      return null;
  }
}

export function isTerminal(state: TaskState): boolean {
  switch (state) {
    case "completed":
    case "failed":
    case "canceled":
    case "rejected":
    case "lost":
    case "wrong-identity":
      return true;
    case "submitted":
    case "working":
    case "input-required":
    case "auth-required":
    case "unknown":
      return false;
  }
}

export function modeWord(mode: FollowingMode): string {
  switch (mode) {
    case "stream":
      return "stream";
    case "push+poll":
      return "push + poll";
    case "poll":
      return "poll";
    case "reconnecting":
      return "reconnecting";
    case "paused":
      return "paused";
    case "ended":
      return "ended";
  }
}

/** The channel that told, as the end of "confirmed … by". */
export function channelWord(channel: string): string {
  switch (channel) {
    case "poll":
      return "read";
    case "push":
      return "callback";
    case "manual":
      return "you";
    default:
      return channel;
  }
}

/** Who told of a change. */
export function sourceWord(source: string): string {
  return source === "manual" ? "here" : channelWord(source);
}

/** What a notice is about. */
export function noticeWord(kind: string): string {
  switch (kind) {
    case "waiting":
      return "the question";
    case "sign-in":
      return "the refused credential";
    case "finished":
      return "the end";
    case "failed":
      return "the failure";
    case "unconfirmed":
      return "the silence";
    case "lost":
      return "the loss";
    case "paused":
      return "the pause";
    default:
      return kind.replaceAll("-", " ");
  }
}

/** What came of a notice. */
export function outcomeWord(outcome: string): string {
  switch (outcome) {
    case "shown":
      return "shown";
    case "merged":
      return "shown with others";
    case "no-desktop":
      return "not shown, there was no window";
    case "suppressed":
    case "failed":
      return "not shown";
    case "not-permitted":
      return "not permitted";
    case "withdrawn":
      return "taken back";
    default:
      return outcome.replaceAll("-", " ");
  }
}

/** What keeps us from reading a task. */
export function troubleWord(code: string): string {
  switch (code) {
    case "unauthorized":
      return "the agent refuses the credential";
    case "forbidden":
      return "the agent forbids reading this task";
    case "agent_unreachable":
      return "the agent does not answer";
    case "agent_timed_out":
      return "the agent does not answer in time";
    case "agent_name_not_resolved":
      return "its host name has no address";
    case "rate_limited":
      return "the agent wants fewer calls";
    case "agent_unavailable":
      return "the agent is not available";
    default:
      if (code.startsWith("upstream_")) return "its answers cannot be read";
      if (code.startsWith("tls_")) return "its certificate is refused";
      return code.replaceAll("_", " ");
  }
}

/** What an answer that nobody can read means for its task. */
export function unreadable(code: string): string | null {
  const because = ((): string | null => {
    switch (code) {
      case "upstream_bad_json":
        return "it is no JSON, nested deeper than 64 levels, or has a key twice";
      case "upstream_too_large":
        return "it is larger than 16 MiB";
      case "upstream_wrong_task":
        return "it is about another task";
      case "upstream_not_a2a":
      case "upstream_not_http":
      case "upstream_malformed":
      case "upstream_wrong_answer":
        return "it is not what A2A says it should be";
      case "upstream_redirect":
        return "it leads to another address";
      default:
        return null;
    }
  })();
  return because === null
    ? null
    : `The agent's last answer was not taken: ${because}. What is shown is what was known before.`;
}

/** How an agent knows us. */
export function credentialWord(kind: string): string {
  switch (kind) {
    case "bearer":
      return "a bearer token";
    case "basic":
      return "a user name and password";
    case "headers":
      return "headers of its own";
    case "token-command":
      return "a command that prints a token";
    default:
      return kind;
  }
}

function ordinal(n: number): string {
  const tens = n % 100;
  const suffix = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${String(n)}${suffix}`;
}

/** `confirmed 40 s ago by stream`: never a bare "connected". */
export function freshness(task: TaskSummary, now: number): string {
  const { lastConfirmed: confirmed } = task;
  return confirmed
    ? `confirmed ${ago(confirmed.at, now)} by ${channelWord(confirmed.by)}`
    : "not confirmed yet";
}

/** How the task is heard of, in one line. */
export function followingLine(task: TaskSummary): string {
  const { mode, attempt } = task.following;
  return mode === "reconnecting" && attempt > 0 ? `reconnecting, ${ordinal(attempt)} try` : modeWord(mode);
}

/** The right end of a row: what matters most about the task in its state. */
export function rowFact(task: TaskSummary, now: number): string {
  if (task.needsSignIn && !isTerminal(task.state)) return "credential refused";
  if (isTerminal(task.state)) {
    const at = task.terminalAt ?? task.updatedAt;
    if (task.state === "completed" && !task.settled && task.following.mode !== "ended") {
      return "finished, fetching the result";
    }
    return `${stateWord(task.state)} ${clock(at, now)}`;
  }
  if (task.waitingSince) {
    return task.needsYou
      ? `${stateWord(task.state)} · ${span(now - Date.parse(task.waitingSince))}`
      : "answered, not moved on yet";
  }
  switch (task.following.mode) {
    case "paused":
      return "not followed: paused";
    case "reconnecting":
      return followingLine(task);
    case "stream":
    case "push+poll":
    case "poll":
    case "ended":
      return task.lastConfirmed
        ? `confirmed ${ago(task.lastConfirmed.at, now)} · ${channelWord(task.lastConfirmed.by)}`
        : "not confirmed yet";
  }
}
