import { expect, test } from "vitest";
import { ANY, entries, matches, queryOf } from "./list";
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

test("a search is asked of the engine with the filters beside it, and without one nobody is asked", () => {
  expect(queryOf(ANY)).toBe("");
  expect(queryOf({ ...ANY, span: "open", agent: "ledger" })).toBe("");
  expect(queryOf({ span: "ended", agent: "ledger", state: "failed", search: " rounding " })).toBe(
    "rounding -is:open agent:ledger state:failed",
  );
});

test("the filters hold for the rows that the page has", () => {
  const one = task("a", { agent: "ledger", state: "failed" });
  expect(matches(one, { ...ANY, agent: "ledger", state: "failed", span: "ended" })).toBe(true);
  expect(matches(one, { ...ANY, span: "open" })).toBe(false);
  expect(matches(one, { ...ANY, agent: "other" })).toBe(false);
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
