/** What the inbox holds, in words, lines and octets to look at. Pure. */
import type { Callback, CallbackDetail, Difference, Verdict } from "../api/types";
import { quoted } from "../agents/curl";
import { stateWord } from "./words";

export const VERDICTS: readonly Verdict[] = [
  "pending",
  "confirmed",
  "ahead",
  "behind",
  "duplicate",
  "rejected",
  "unmatched",
  "unreachable",
];

/** Of a mark: how much it wants to be looked at. */
export type Weight = "done" | "quiet" | "waiting" | "failed";

export function weightOf(verdict: Verdict): Weight {
  switch (verdict) {
    case "confirmed":
      return "done";
    case "pending":
    case "behind":
    case "duplicate":
      return "quiet";
    case "ahead":
    case "unreachable":
      return "waiting";
    case "rejected":
    case "unmatched":
      return "failed";
  }
}

export function verdictMeaning(verdict: Verdict): string {
  switch (verdict) {
    case "confirmed":
      return "The agent, asked afterwards, says the same.";
    case "pending":
      return "The task has not been read since this came. Until then it is a claim.";
    case "behind":
      return "The task was further when it was read. Nothing is missing.";
    case "duplicate":
      return "An earlier callback had claimed the very same.";
    case "ahead":
      return "The agent, asked afterwards, does not say so. What is shown of the task is what the agent says.";
    case "unreachable":
      return "The agent could not be asked, so this is still a claim. It is asked again when it answers.";
    case "rejected":
      return "It was not taken: nothing of it was stored and nothing was read because of it.";
    case "unmatched":
      return "It does not fit its task, and changed nothing.";
  }
}

/** `finished → working`: what it claimed and what the task was when it was read. */
export function statesLine(item: Callback): string {
  // What was not taken claims nothing; why it was not is all there is.
  if (item.shape == null) return item.text;
  const claimed = item.claimed ? stateWord(item.claimed) : item.shape;
  return `${claimed} → ${item.confirmed ? stateWord(item.confirmed) : "not confirmed"}`;
}

/** What is worth a look of what came within a day. */
export function notable(items: readonly Callback[], now: number): number {
  const since = now - 86_400_000;
  return items.filter((item) => {
    const weight = weightOf(item.verdict);
    return (weight === "waiting" || weight === "failed") && Date.parse(item.lastAt) >= since;
  }).length;
}

export function proofMeaning(word: string): string {
  switch (word) {
    case "valid":
      return "sent, and right";
    case "valid-old":
      return "sent, and right until the rotation; the agent has not taken the new one yet";
    case "wrong":
      return "sent, and wrong";
    case "missing":
      return "not sent, though it was registered";
    case "unused":
      return "not registered, not sent";
    default:
      return word;
  }
}

/** A line of a document, and the place that it is of. */
export interface Line {
  text: string;
  pointer: string;
  /** The document says something else there than the other one. */
  differs: boolean;
}

/** Lines that are drawn one by one; longer documents are shown as text. */
export const LINES_MAX = 4_000;

/** A document as indented lines; null where that would be too many. */
export function lines(
  document: unknown,
  differences: readonly Difference[],
  side: "claimed" | "confirmed",
): Line[] | null {
  const places = new Map(differences.map((difference) => [difference.pointer, difference]));
  const found: Line[] = [];
  const differsAt = (pointer: string, value: unknown): boolean => {
    const difference = places.get(pointer);
    if (!difference) return false;
    // The other document may count its items otherwise: there the value says whether it is meant.
    return side === "claimed" || JSON.stringify(difference.confirmed) === JSON.stringify(value);
  };
  const put = (text: string, pointer: string, differs: boolean): boolean => {
    found.push({ text, pointer, differs });
    return found.length <= LINES_MAX;
  };
  const walk = (
    value: unknown,
    pointer: string,
    indent: string,
    before: string,
    after: string,
    marked: boolean,
  ): boolean => {
    const differs = marked || differsAt(pointer, value);
    if (Array.isArray(value) && value.length > 0) {
      if (!put(`${indent}${before}[`, pointer, differs)) return false;
      for (const [index, item] of value.entries()) {
        const comma = index < value.length - 1 ? "," : "";
        if (!walk(item, `${pointer}/${String(index)}`, `${indent}  `, "", comma, differs)) return false;
      }
      return put(`${indent}]${after}`, pointer, differs);
    }
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      const members = Object.entries(value as Record<string, unknown>);
      if (members.length > 0) {
        if (!put(`${indent}${before}{`, pointer, differs)) return false;
        for (const [index, [name, member]] of members.entries()) {
          const step = name.replaceAll("~", "~0").replaceAll("/", "~1");
          const comma = index < members.length - 1 ? "," : "";
          const head = `${JSON.stringify(name)}: `;
          if (!walk(member, `${pointer}/${step}`, `${indent}  `, head, comma, differs)) return false;
        }
        return put(`${indent}}${after}`, pointer, differs);
      }
    }
    return put(`${indent}${before}${JSON.stringify(value)}${after}`, pointer, differs);
  };
  return walk(document, "", "", "", "", false) ? found : null;
}

const HEX_MAX = 16_384;

/** Octets as sixteen a line: place, hex, and what can be printed. The beginning of a long body. */
export function hex(text: string): string {
  const octets = new TextEncoder().encode(text);
  const shown = octets.subarray(0, HEX_MAX);
  const rows: string[] = [];
  for (let at = 0; at < shown.length; at += 16) {
    const row = [...shown.subarray(at, at + 16)];
    const codes = row.map((octet) => octet.toString(16).padStart(2, "0")).join(" ");
    const print = row.map((octet) => (octet > 31 && octet < 127 ? String.fromCharCode(octet) : "·")).join("");
    rows.push(`${at.toString(16).padStart(6, "0")}  ${codes.padEnd(47)}  ${print}`);
  }
  const more = octets.length - shown.length;
  return more > 0 ? `${rows.join("\n")}\n… and ${more.toLocaleString()} octets more` : rows.join("\n");
}

/** The request as a curl line. Its secrets are masked: it shows what came and proves nothing. */
export function asCurl(detail: CallbackDetail): string {
  const headers = Object.entries(detail.headers as Record<string, unknown>)
    .filter(([, value]) => typeof value === "string")
    .map(([name, value]) => `-H ${quoted(`${name}: ${String(value)}`)}`);
  const data = detail.body == null ? [] : [`--data-raw ${quoted(detail.body)}`];
  return ["curl -X POST", ...headers, ...data, quoted(detail.url)].join(" \\\n  ");
}
