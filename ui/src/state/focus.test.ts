import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Host } from "../host/host";
import { reportFocus } from "./focus";

let calls: unknown[];
let focused: boolean;
let stop: () => void;

let host: Host;

beforeEach(() => {
  vi.useFakeTimers();
  calls = [];
  host = {
    request: (method: string, path: string, body?: unknown) => {
      calls.push([method, path, body]);
      return Promise.resolve(null);
    },
  } as Host;
  focused = true;
  vi.spyOn(document, "hasFocus").mockImplementation(() => focused);
});

afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("the task that is looked at is told again and again, for the engine forgets it", () => {
  stop = reportFocus(host, "demo/t-1");
  vi.advanceTimersByTime(9_000);
  expect(calls).toEqual(Array(3).fill(["PUT", "/focus", { task: "demo/t-1" }]));
});

test("losing the focus is told once, and a page without it tells nothing", () => {
  stop = reportFocus(host, "demo/t-1");
  focused = false;
  window.dispatchEvent(new Event("blur"));
  vi.advanceTimersByTime(20_000);
  expect(calls.slice(1)).toEqual([["PUT", "/focus", { task: null }]]);
});

test("a page that shows no task tells nothing", () => {
  stop = reportFocus(host, null);
  vi.advanceTimersByTime(20_000);
  expect(calls).toEqual([]);
});

test("turning from a task to a screen without one is told at once", () => {
  reportFocus(host, "demo/t-1")();
  stop = reportFocus(host, null);
  vi.advanceTimersByTime(20_000);
  expect(calls.slice(1)).toEqual([["PUT", "/focus", { task: null }]]);
});
