import { expect, test } from "vitest";
import { offsetsOf, windowOf } from "./virtual";

test("only rows in sight and some beside them are drawn", () => {
  const offsets = offsetsOf(Array.from({ length: 500 }), () => 44);
  expect(offsets.at(-1)).toBe(500 * 44);
  const { from, to } = windowOf(offsets, 4400, 440, 0);
  expect(from).toBeLessThanOrEqual(100);
  expect(from).toBeGreaterThan(97);
  expect(to).toBeGreaterThanOrEqual(110);
  expect(to).toBeLessThan(113);
});

test("an empty list and a place beyond the end draw nothing wrong", () => {
  expect(windowOf([0], 0, 600)).toEqual({ from: 0, to: 0 });
  const { from, to } = windowOf(
    offsetsOf([1, 2, 3], () => 44),
    9_000,
    600,
  );
  expect(from).toBeLessThanOrEqual(to);
  expect(to).toBe(3);
});
