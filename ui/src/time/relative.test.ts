import { expect, test } from "vitest";
import { ago, clock, span } from "./relative";

const now = new Date(2026, 0, 2, 12, 0, 0).getTime();
const before = (ms: number): string => new Date(now - ms).toISOString();

test("an age has one unit and is never rounded up", () => {
  expect(span(59_999)).toBe("59 s");
  expect(span(60_000)).toBe("1 min");
  expect(span(3_599_999)).toBe("59 min");
  expect(span(86_399_999)).toBe("23 h");
  expect(span(86_400_000 * 9)).toBe("9 d");
});

test("what happened this moment, or by a clock that runs ahead, happened just now", () => {
  expect(ago(before(1_500), now)).toBe("just now");
  expect(ago(before(-60_000), now)).toBe("just now");
  expect(ago(before(40_000), now)).toBe("40 s ago");
});

test("a time of another day says which", () => {
  expect(clock(before(60_000), now)).toBe("11:59");
  expect(clock(before(86_400_000), now)).toMatch(/1.* 12:00$/);
});
