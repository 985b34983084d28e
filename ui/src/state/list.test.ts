import { expect, test } from "vitest";
import { ANY, entries, matches } from "./list";
import { task } from "./rows.test";
import { rowFact, freshness } from "./words";

const now = Date.parse("2026-01-02T12:00:00.000Z");

test("what waits comes first and the longest wait leads it, then what runs, then what ended", () => {
  const list = entries(
    [
      task("ended", { state: "completed", terminalAt: "2026-01-02T11:00:00.000Z" }),
      task("running"),
      task("young", { state: "input-required", needsYou: true, waitingSince: "2026-01-02T11:59:00.000Z" }),
      task("old", { state: "input-required", needsYou: true, waitingSince: "2026-01-02T11:00:00.000Z" }),
      task("earlier", { state: "failed", terminalAt: "2025-12-24T11:00:00.000Z" }),
    ],
    ANY,
    now,
  );
  expect(list.map((entry) => (entry.kind === "heading" ? entry.text : entry.task.id))).toEqual([
    "Waiting for you",
    "old",
    "young",
    "Running",
    "running",
    "Ended today",
    "ended",
    "Ended earlier",
    "earlier",
  ]);
});

test("a task that was answered waits for nobody", () => {
  const [heading] = entries(
    [task("a", { state: "input-required", waitingSince: "2026-01-02T11:00:00.000Z" })],
    ANY,
    now,
  );
  expect(heading).toMatchObject({ text: "Running" });
});

test("a pinned task leads its group", () => {
  const list = entries(
    [task("new", { createdAt: "2026-01-02T11:00:00.000Z" }), task("kept", { pinned: true })],
    ANY,
    now,
  );
  expect(list.map((entry) => entry.key)).toEqual(["heading Running", "demo/kept", "demo/new"]);
});

test("every word of the search must be found, and prefixes look in one place", () => {
  const one = task("a", { title: "Migrate billing", agent: "ledger" });
  const find = (search: string): boolean => matches(one, { ...ANY, search });
  expect(find("billing MIGRATE")).toBe(true);
  expect(find("billing nothing")).toBe(false);
  expect(find("agent:ledg state:working via:stream")).toBe(true);
  expect(find("agent:billing")).toBe(false);
  expect(matches(task("b", { state: "input-required" }), { ...ANY, search: "state:needs-input" })).toBe(true);
});

test("a row never says only that it is connected", () => {
  expect(rowFact(task("a", { lastConfirmed: { at: "2026-01-02T11:59:20.000Z", by: "stream" } }), now)).toBe(
    "confirmed 40 s ago · stream",
  );
  expect(freshness(task("a", { lastConfirmed: null }), now)).toBe("not confirmed yet");
});

test("an end that no read has confirmed is called a claim", () => {
  const claimed = task("a", { state: "completed", terminalAt: "2026-01-02T11:59:00.000Z" });
  expect(rowFact(claimed, now)).toBe("finished, fetching the result");
  expect(rowFact({ ...claimed, settled: true }, now)).toMatch(/^finished \d\d:\d\d$/);
});
