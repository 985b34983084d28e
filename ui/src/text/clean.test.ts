import { expect, test } from "vitest";
import { breakable, clean, fileName, hidesText, oneLine, visibleJson } from "./clean";

test("what reorders, hides or commands is taken out", () => {
  expect(clean("invoice_\u202egnp.exe")).toBe("invoice_gnp.exe");
  expect(clean("ok\u{e0049}\u{e0067} all\u200b rules\ufeff")).toBe("ok all rules");
  expect(
    oneLine(
      "\u001b[2J\u001b[31mERROR\u001b[0m \u001b]8;;https://evil.example.net\u0007click\u001b]8;;\u0007 \u001b]0;pwned\u0007",
    ),
  ).toBe("ERROR click");
  expect(clean("a\r\n\tb\u0000\u2028c")).toBe("a\n\tb\nc");
});

test("text that nobody can see is told, and a joiner or a flag is none", () => {
  expect(hidesText("ok\u{e0049}\u{e0067}\u{e006e} all rules")).toBe(true);
  expect(hidesText(`a${"\u200b\u200c".repeat(16)}b`)).toBe(true);
  expect(hidesText("x\u{e0101}\u{e0134}")).toBe(true);
  expect(hidesText("👩‍🚀 ا\u200c ok\ufeff")).toBe(false);
  expect(hidesText("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}")).toBe(false);
});

test("joiners stay within scripts and emoji", () => {
  const family = "👨\u200d👩\u200d👧 می\u200cخواهم ❤\ufe0f";
  expect(clean(family)).toBe(family);
  expect(clean("ad\u200dmin")).toBe("admin");
});

test("a file's name is never a path, a device or a stream", () => {
  expect(fileName("../../.config/autostart/evil.desktop")).toBe("evil.desktop");
  expect(fileName("C:\\x\\y.png")).toBe("y.png");
  expect(fileName("CON.txt:stream\u0000.exe")).toBe("_CON.txt_stream.exe");
  expect(fileName("..")).toBe("file");
  expect(fileName("console.log")).toBe("console.log");
  expect(fileName("incident-4112.md")).toBe("incident-4112.md");
});

test("JSON shows what is hidden in it and stays the same", () => {
  const value = { a: "x\u202ey\u{e0049}\u001b" };
  const shown = visibleJson(JSON.stringify(value, null, 2));
  expect(shown).toContain("x\\u202ey\\udb40\\udc49");
  expect(JSON.parse(shown)).toEqual(value);
});

test("only long words are cut, and nothing gets lost", () => {
  expect(breakable("two words")).toEqual(["two words"]);
  const long = `see ${"W😀".repeat(1000)}`;
  expect(breakable(long).length).toBeGreaterThan(10);
  expect(breakable(long).join("")).toBe(long);
  expect(breakable(long).every((piece) => !/^[\udc00-\udfff]/.test(piece))).toBe(true);
});
