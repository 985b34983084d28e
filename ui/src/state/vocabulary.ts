/** The keys that the searches know, with their values, for completion. The engine decides what is right. Pure. */
import { VERDICTS } from "./inbox";
import type { Key } from "./query";
import { STATES } from "./words";

const SINCE = ["30m", "4h", "24h", "7d", "30d"];

export function taskKeys(agents: readonly string[]): Key[] {
  return [
    { key: "state", meaning: "how it stands", values: STATES },
    { key: "agent", meaning: "whose task it is", values: agents },
    {
      key: "via",
      meaning: "who confirmed it last, or how it is followed",
      values: ["stream", "push", "poll", "manual", "gateway", "push+poll", "reconnecting", "paused"],
    },
    {
      key: "verdict",
      meaning: "a callback of it that is",
      values: VERDICTS.filter((verdict) => verdict !== "rejected"),
    },
    {
      key: "is",
      meaning: "what you or it did",
      values: ["open", "waiting", "pinned", "snoozed", "muted", "noted", "archived"],
    },
    { key: "since", meaning: "changed within", values: SINCE },
  ];
}

export function inboxKeys(agents: readonly string[]): Key[] {
  return [
    { key: "verdict", meaning: "what it was worth", values: VERDICTS },
    { key: "state", meaning: "what it claimed", values: STATES },
    { key: "agent", meaning: "who called back", values: agents },
    { key: "is", meaning: "not settled yet", values: ["open"] },
    { key: "since", meaning: "came within", values: SINCE },
  ];
}
