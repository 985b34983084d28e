/** What happened to a task, from the change feed, in words. Pure. */
import type { Change, TaskState } from "../api/types";
import {
  channelWord,
  modeWord,
  noticeWord,
  outcomeWord,
  sourceWord,
  STATES,
  stateWord,
  troubleWord,
} from "./words";

export type Moment =
  | { kind: "gap"; key: string; at: string; from: string; to: string }
  | {
      kind: "moment";
      key: string;
      at: string;
      source: string;
      /** Drawn before the words, where the moment is about the state. */
      state: TaskState | null;
      text: string;
      /** Words of the agent or of the user. */
      quote: string;
    };

function textOf(change: Change, name: string): string {
  const value = change[name];
  return typeof value === "string" ? value : "";
}

function stateOf(word: string): TaskState | null {
  return STATES.find((state) => state === word) ?? null;
}

function describe(change: Change): { text: string; state?: TaskState | null; quote?: string } {
  switch (change.kind) {
    case "status": {
      const state = stateOf(textOf(change, "state"));
      const from = stateOf(textOf(change, "from"));
      const word = state ? stateWord(state) : textOf(change, "state");
      const raw = textOf(change, "rawState");
      const text =
        change["found"] === true
          ? `shown by the agent again: ${word}`
          : from
            ? `${stateWord(from)} → ${word}`
            : word;
      const words = textOf(change, "text");
      // Still the same state: what the agent says is the news.
      if (!from && change["found"] !== true && words !== "") return { text: "", state, quote: words };
      return { text: raw === "" ? text : `${text} (${raw})`, state, quote: words };
    }
    case "artifact": {
      const name = textOf(change, "name") || textOf(change, "artifactId");
      return { text: `${change["append"] === true ? "more of the result" : "result"} ${name}` };
    }
    case "message":
      return textOf(change, "role") === "user"
        ? { text: "you replied", quote: textOf(change, "text") }
        : { text: "message", quote: textOf(change, "text") };
    case "following": {
      const trouble = change["trouble"];
      if (typeof trouble === "string") return { text: `not read: ${troubleWord(trouble)}` };
      const mode = textOf(change, "mode");
      const attempt = change["attempt"];
      if (mode === "reconnecting") {
        const nth = typeof attempt === "number" && attempt > 1 ? `, try ${String(attempt)}` : "";
        return { text: `connection lost, reconnecting${nth}` };
      }
      if (mode === "ended") return { text: "following ended" };
      if (mode === "paused") return { text: "following paused" };
      if (mode === "stream" || mode === "poll" || mode === "push+poll")
        return { text: `followed by ${modeWord(mode)}` };
      return { text: "following" };
    }
    case "registration": {
      const reason = textOf(change, "reason");
      return {
        text: `callbacks: ${textOf(change, "registration")}${reason === "" ? "" : ` (${troubleWord(reason)})`}`,
      };
    }
    case "callback": {
      const refused = change["refused"];
      if (typeof refused === "number") {
        return {
          text: `${String(refused)} callbacks refused: ${textOf(change, "reason").replaceAll("_", " ")}`,
        };
      }
      const number = change["callback"];
      const name = `callback ${typeof number === "number" ? String(number) : ""}`.trim();
      const verdict = textOf(change, "verdict");
      if (verdict !== "") return { text: `${name}: ${verdict}, ${textOf(change, "text")}` };
      const count = change["count"];
      return {
        text: typeof count === "number" && count > 1 ? `${name} came ${String(count)} times` : `${name} came`,
      };
    }
    case "task":
      if (change["missed"] === true) {
        return {
          text: `the end was missed by ${channelWord(textOf(change, "way"))}: ${textOf(change, "text")}`,
        };
      }
      if (change["late"] === true) return { text: "the callback of the end came late" };
      if (typeof change["pinned"] === "boolean") return { text: change["pinned"] ? "pinned" : "unpinned" };
      if (typeof change["archived"] === "boolean") {
        return { text: change["archived"] ? "archived" : "taken out of the archive" };
      }
      if (typeof change["muted"] === "boolean") return { text: change["muted"] ? "muted" : "unmuted" };
      if (typeof change["note"] === "boolean") {
        return { text: change["note"] ? "you wrote a note" : "you took the note away" };
      }
      if (typeof change["snoozed"] === "boolean") {
        return { text: change["snoozed"] ? "snoozed" : "woken from its snooze" };
      }
      if (change["settled"] === true) return { text: "the end was read from the agent: final" };
      return { text: "first seen", state: stateOf(textOf(change, "state")) };
    case "notice": {
      const detail = textOf(change, "detail");
      const why = detail === "" ? "" : `: ${detail}`;
      return {
        text: `notice of ${noticeWord(textOf(change, "notice"))} ${outcomeWord(textOf(change, "outcome"))}${why}`,
      };
    }
    default:
      return { text: channelWord(change.kind) };
  }
}

/** The newest first. Chunks of one artifact in a row are one moment; a gap stands where it was. */
export function moments(changes: readonly Change[]): Moment[] {
  const found: Moment[] = [];
  let chunked: string | null = null;
  let count = 0;
  for (const change of changes) {
    if (change.kind === "gap") {
      chunked = null;
      const [from, to] = [textOf(change, "from"), textOf(change, "to")];
      if (from !== "" && to !== "")
        found.push({ kind: "gap", key: `${String(change.seq)}`, at: change.at, from, to });
      continue;
    }
    // A notice is told of twice: when it is due, and with what came of it. The second is the news.
    if (change.kind === "notice" && typeof change["outcome"] !== "string") continue;
    const { text, state, quote } = describe(change);
    const moment: Moment = {
      kind: "moment",
      key: String(change.seq),
      at: change.at,
      // How we follow and notify is our own doing, whoever made us.
      source: ["following", "notice", "registration"].includes(change.kind) ? "" : sourceWord(change.source),
      state: state ?? null,
      text,
      quote: quote ?? "",
    };
    const artifact = change.kind === "artifact" ? textOf(change, "artifactId") : null;
    if (artifact !== null && chunked === artifact) {
      count += 1;
      const name = textOf(change, "name") || artifact;
      found[found.length - 1] = { ...moment, text: `result ${name}, ${String(count)} parts` };
      continue;
    }
    chunked = artifact;
    count = 1;
    found.push(moment);
  }
  return found.reverse();
}
