import { expect, test } from "vitest";
import type { HealthItem } from "../api/types";
import { agentOf, helpFor, sorted, summary } from "./health";

const item = (component: string, state: HealthItem["state"] = "ok"): HealthItem => ({
  component,
  state,
  since: "2026-01-02T12:00:00.000Z",
  detail: "",
});

test("what does not work comes first, then what needs a look, then the rest in its order", () => {
  const items = [item("a"), item("b", "warn"), item("c"), item("d", "bad")];
  expect(sorted(items).map((one) => one.component)).toEqual(["d", "b", "a", "c"]);
});

test("the sum is a sentence", () => {
  expect(summary([])).toMatch(/Nothing is known/);
  expect(summary([item("a"), item("b")])).toBe("All 2 parts work.");
  expect(summary([item("a", "bad"), item("b", "warn"), item("c", "warn"), item("d")])).toBe(
    "1 part does not work, 2 need a look; 1 are well.",
  );
});

test("an agent is known by its name, and is tested; a part of the engine is none", () => {
  expect(agentOf("agent reader")).toBe("reader");
  expect(agentOf("agents")).toBeNull();
  expect(helpFor(item("agent reader", "bad"))).toMatchObject({ does: "test-agent", agent: "reader" });
  expect(helpFor(item("something new", "bad"))).toBeNull();
  expect(helpFor(item("store"))).toBeNull();
});
