/** The engine's settings as people see them: in which part, under which name, changed how. Pure. */
import type { Setting } from "../api/types";
import type { Section } from "./view.svelte";

export type Control =
  | { kind: "switch"; on: string; off: string }
  | { kind: "words"; words: readonly { value: string; label: string }[] }
  | { kind: "number"; unit: string }
  | { kind: "time" }
  | { kind: "text" };

interface Known {
  section: Section;
  label: string;
  control: Control;
  /** Where the engine's own sentence would repeat the control. */
  meaning?: string;
}

const SWITCH: Control = { kind: "switch", on: "on", off: "off" };
const TEXT: Control = { kind: "text" };
const seconds: Control = { kind: "number", unit: "seconds" };
const days: Control = { kind: "number", unit: "days" };

export const NOTICE_KINDS = [
  { kind: "waiting", label: "A task waits for you" },
  { kind: "sign-in", label: "An agent refuses its credential" },
  { kind: "failed", label: "A task failed or was rejected" },
  { kind: "finished", label: "A task finished" },
  { kind: "unconfirmed", label: "A task could not be confirmed for 15 minutes" },
  { kind: "lost", label: "An agent no longer knows a task" },
  { kind: "paused", label: "A receiver was paused" },
] as const;

const LOUDNESS = [
  { value: "sound", label: "with sound" },
  { value: "silent", label: "without sound" },
  { value: "off", label: "not at all" },
];

const KNOWN: Readonly<Record<string, Known>> = {
  autostart: { section: "general", label: "Start with the system", control: SWITCH },
  "gateway.share_tasks": {
    section: "general",
    label: "Clients see all tasks",
    control: { kind: "switch", on: "yes", off: "no" },
    meaning: "Every client of the gateway sees all tasks of an agent, not only its own.",
  },
  "delivery.retry": {
    section: "general",
    label: "Callbacks to clients are tried again",
    control: {
      kind: "words",
      words: [
        { value: "series", label: "for 28 hours" },
        { value: "once", label: "once" },
      ],
    },
    meaning: "How often a callback about an end or a question is tried again.",
  },
  "follow.silence": { section: "general", label: "Doubt a silent stream after", control: seconds },
  "follow.slow_read": { section: "general", label: "Read a task at least every", control: seconds },
  "follow.poll_max": { section: "general", label: "Poll at least every", control: seconds },
  "follow.reattach_max": { section: "general", label: "Reattach at least every", control: seconds },
  "quiet.from": { section: "notices", label: "Quiet from", control: { kind: "time" } },
  "quiet.to": { section: "notices", label: "Quiet until", control: { kind: "time" } },
  "quiet.urgent": { section: "notices", label: "Comes through all the same", control: TEXT },
  public_url: { section: "address", label: "Public address", control: TEXT },
  "tunnel.command": { section: "address", label: "Tunnel command", control: TEXT },
  "retention.days": { section: "storage", label: "Keep ended tasks", control: days },
  "retention.bodies": { section: "storage", label: "Keep bodies of callbacks", control: days },
  "log.level": { section: "storage", label: "Log", control: TEXT },
};

/** The setting of an agent: `proof.builder` is the proof that builder's callbacks must show. */
function ofAgent(key: string): (Known & { agent: string }) | null {
  const [, kind, agent] = /^(push|proof)\.(.+)$/.exec(key) ?? [];
  if (agent === undefined) return null;
  return kind === "push"
    ? { agent, section: "address", label: agent, control: SWITCH, meaning: "" }
    : {
        agent,
        section: "security",
        label: agent,
        meaning: "",
        control: {
          kind: "words",
          words: [
            { value: "any", label: "any registered proof" },
            { value: "all", label: "every registered proof" },
          ],
        },
      };
}

/** Which notices of an agent are shown, or of all: `notice.failed`, `notice.builder.failed`. */
export function noticeOf(key: string): { agent: string | null; kind: string } | null {
  const [, agent, kind] = /^notice\.(?:(.+)\.)?([a-z-]+)$/.exec(key) ?? [];
  return kind === undefined ? null : { agent: agent ?? null, kind };
}

function known(key: string): Known | null {
  const notice = noticeOf(key);
  if (notice) {
    return {
      section: "notices",
      label: NOTICE_KINDS.find(({ kind }) => kind === notice.kind)?.label ?? notice.kind,
      control: {
        kind: "words",
        words:
          notice.agent === null ? LOUDNESS : [{ value: "default", label: "as for all agents" }, ...LOUDNESS],
      },
      meaning: "",
    };
  }
  return KNOWN[key] ?? ofAgent(key);
}

const GROUPS: Readonly<Record<string, Section>> = {
  Notices: "notices",
  "Public address": "address",
  Storage: "storage",
  Security: "security",
};

export function sectionOfKey(key: string): Section {
  return known(key)?.section ?? "general";
}

/** Where a setting stands that this page was not told of: the engine says in which group. */
export function sectionOf({ key, group }: Setting): Section {
  return known(key)?.section ?? GROUPS[group] ?? "general";
}

export function labelOf({ key }: Setting): string {
  return known(key)?.label ?? key;
}

export function controlOf({ key, kind }: Setting): Control {
  const own = known(key)?.control;
  if (own) return own;
  switch (kind.type) {
    case "words":
      return {
        kind: "words",
        words: kind.words.map((word) => ({ value: word, label: word.replaceAll("-", " ") })),
      };
    case "number":
      return { kind: "number", unit: kind.unit };
    case "text":
      return TEXT;
  }
}

export function meaningOf(setting: Setting): string {
  const later = setting.restart ? " It holds from the next start on." : "";
  const own = known(setting.key)?.meaning;
  if (own !== undefined) return own + later;
  const text = setting.meaning.replace(/\s*\([a-z-]+(, [a-z-]+)+\)$/, "");
  return text.charAt(0).toLocaleUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") + later;
}

export function isDefault(setting: Setting): boolean {
  return setting.value === setting.default;
}

/** The default as the control shows it. */
export function shownDefault(setting: Setting): string {
  const control = controlOf(setting);
  if (control.kind === "words") {
    return control.words.find((word) => word.value === setting.default)?.label ?? setting.default;
  }
  if (control.kind === "number") return `${setting.default} ${control.unit}`;
  return setting.default === "" ? "none" : setting.default;
}
