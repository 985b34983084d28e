import { expect, test } from "vitest";
import { completed, completions, type Key } from "./query";

const KEYS: Key[] = [
  { key: "state", meaning: "what it is in", values: ["working", "failed", "completed"] },
  { key: "agent", meaning: "whose it is", values: ["reader", "night shift"] },
  { key: "since", meaning: "", values: ["24h"] },
];
const offered = (text: string, caret = text.length): string[] =>
  completions(text, caret, KEYS).map((one) => one.text);

test("a word that begins like a key is offered the keys, and a word that does not is only a word", () => {
  expect(offered("s")).toEqual(["state:", "since:"]);
  expect(offered("report st")).toEqual(["state:"]);
  expect(offered("")).toEqual([]);
  expect(offered("report ")).toEqual([]);
  expect(offered("report")).toEqual([]);
});

test("after a key its values are offered, in quotes where they need them, and what is there already is not", () => {
  expect(offered("state:")).toEqual(["working", "failed", "completed"]);
  expect(offered("-state:f")).toEqual(["failed"]);
  expect(offered("state:failed,")).toEqual(["working", "completed"]);
  expect(offered("agent:n")).toEqual(['"night shift"']);
  expect(offered("nothing:x")).toEqual([]);
  expect(offered("state:failed")).toEqual([]);
});

test("inside of quotes nothing is offered", () => {
  expect(offered('"the st')).toEqual([]);
});

test("a completion takes the place of the word that the caret is in, and only of that", () => {
  const at = (text: string, caret: number) => {
    const [first] = completions(text, caret, KEYS);
    return first && completed(text, first);
  };
  expect(at("sta report", 3)).toEqual({ text: "state: report", caret: 6 });
  expect(at("state:wo report", 8)).toEqual({ text: "state:working report", caret: 13 });
  expect(at("-ag", 3)).toEqual({ text: "-agent:", caret: 7 });
  expect(at("state:failed,w", 14)).toEqual({ text: "state:failed,working ", caret: 21 });
});
