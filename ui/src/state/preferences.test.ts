import { expect, test } from "vitest";
import { contrastOf, DEFAULTS, read, schemeOf } from "./preferences.svelte";

test("what was kept is taken word by word, and what cannot be read is as it was before anybody chose", () => {
  expect(read(null)).toEqual(DEFAULTS);
  expect(read("{ not json")).toEqual(DEFAULTS);
  expect(read('"dark"')).toEqual(DEFAULTS);
  expect(read('{"theme":"dark","contrast":"loud","letters":false,"zoom":130,"density":"tight"}')).toEqual({
    ...DEFAULTS,
    theme: "dark",
    letters: false,
    density: "tight",
  });
});

test("the system decides until somebody chooses", () => {
  expect([schemeOf("system", true), schemeOf("system", false), schemeOf("light", true)]).toEqual([
    "dark",
    "light",
    "light",
  ]);
  expect([contrastOf("system", true), contrastOf("usual", true), contrastOf("more", false)]).toEqual([
    "more",
    "usual",
    "more",
  ]);
});
