import { expect, test } from "vitest";
import { snoozeChoices } from "./snooze";

const labels = (now: Date): string[] => snoozeChoices(now).map((one) => one.label);

test("what is offered fits the time of the day and of the week", () => {
  expect(labels(new Date(2026, 0, 7, 10))).toContain("This evening");
  expect(labels(new Date(2026, 0, 7, 17))).not.toContain("This evening");
  // On a Sunday tomorrow is Monday.
  expect(labels(new Date(2026, 0, 11, 10))).not.toContain("Monday morning");
});

test("each is later than now and later than the one before, on every day of a week", () => {
  for (let day = 5; day < 12; day += 1) {
    for (const hour of [0, 8, 15, 23]) {
      const now = new Date(2026, 0, day, hour, 30);
      const times = [now, ...snoozeChoices(now).map((one) => one.until)].map((at) => at.getTime());
      expect(times.slice(1).every((at, place) => at > (times[place] ?? Infinity))).toBe(true);
    }
  }
});

test("Monday is the next one, at nine", () => {
  const monday = snoozeChoices(new Date(2026, 0, 9, 20)).find((one) => one.label === "Monday morning");
  expect(monday?.until).toEqual(new Date(2026, 0, 12, 9));
});
