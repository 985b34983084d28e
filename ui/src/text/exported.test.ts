import { expect, test } from "vitest";
import { asFile, sortedOut } from "./exported";

const file = (name: string, more: object = {}) => ({
  name,
  mediaType: "text/plain",
  text: "é",
  base64: null,
  ...more,
});

test("a file is its octets, given as text or as base64", () => {
  expect([...asFile(file("a.txt")).content()]).toEqual([0xc3, 0xa9]);
  expect([...asFile(file("a.bin", { text: null, base64: "AP8=" })).content()]).toEqual([0, 255]);
});

test("what could run when it is opened is left to the archive", () => {
  const found = sortedOut([file("notes.md"), file("run.sh"), file("page.html", { mediaType: "text/html" })]);
  expect(found.plain.map((one) => one.name)).toEqual(["notes.md"]);
  expect(found.active).toBe(2);
});
