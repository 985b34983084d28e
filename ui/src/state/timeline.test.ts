import { expect, test } from "vitest";
import type { Change } from "../api/types";
import { moments } from "./timeline";

let seq = 0;
function change(kind: string, more: Record<string, unknown> = {}): Change {
  seq += 1;
  return {
    seq,
    at: "2026-01-02T10:00:00.000Z",
    task: "demo/a",
    agent: "demo",
    source: "stream",
    kind,
    ...more,
  } as unknown as Change;
}

test("a gap stands where nobody listened, and the newest moment is the first", () => {
  const found = moments([
    change("status", { from: "submitted", state: "working", text: "step 1" }),
    change("gap", { from: "2026-01-02T10:00:01.000Z", to: "2026-01-02T10:00:09.000Z" }),
    change("status", { from: "working", state: "completed", text: "" }),
  ]);
  expect(found.map((moment) => (moment.kind === "gap" ? "gap" : moment.text))).toEqual([
    "working → finished",
    "gap",
    "submitted → working",
  ]);
});

test("chunks of one artifact in a row are one moment", () => {
  const chunk = (append: boolean): Change =>
    change("artifact", { artifactId: "x", name: "report.md", append, text: "…" });
  const found = moments([chunk(false), chunk(true), chunk(true)]);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatchObject({ text: "result report.md, 3 parts" });
});

test("words in the same state stand alone, and a word of no version is shown as it came", () => {
  const found = moments([
    change("status", { state: "working", text: "Compared 48,211 entries" }),
    change("status", { from: "working", state: "unknown", rawState: "paused-for-lunch", text: "" }),
  ]);
  expect(found[1]).toMatchObject({ text: "", quote: "Compared 48,211 entries", state: "working" });
  expect(found[0]).toMatchObject({ text: "working → unknown state (paused-for-lunch)" });
});

test("a notice is one moment, with what came of it", () => {
  const found = moments([
    change("notice", { notice: "waiting", outcome: null }),
    change("notice", { notice: "waiting", outcome: "no-desktop", detail: null }),
  ]);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatchObject({
    text: "notice of the question not shown, there was no window",
    source: "",
  });
});

test("what the user does with a task is told as that, and not as if it were seen for the first time", () => {
  const told = (more: object): string => {
    const [moment] = moments([
      {
        seq: 1,
        at: "2026-01-02T12:00:00.000Z",
        source: "manual",
        kind: "task",
        task: "a/b",
        ...more,
      } as never,
    ]);
    return moment?.kind === "moment" ? moment.text : "";
  };
  expect([
    told({ muted: true }),
    told({ note: true }),
    told({ snoozed: false }),
    told({ archived: true }),
  ]).toEqual(["muted", "you wrote a note", "woken from its snooze", "archived"]);
});
