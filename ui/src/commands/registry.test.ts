import { expect, test, vi } from "vitest";
import type { App } from "../state/app";
import { allCommands } from "./all";
import { isPlain, isWriting, keyLabel, keyOf } from "./keys";
import { clashes, commandFor, search, type Command } from "./registry";

const pressed = (key: string, more: object = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
  altKey: false,
  ...more,
});

const command = (id: string, more: Partial<Command> = {}): Command => ({
  id,
  title: id,
  group: "Go",
  keys: [],
  when: () => true,
  run: vi.fn(),
  ...more,
});

test("keys are named the same on every system, and Mod is the system's own", () => {
  expect(keyOf(pressed("K", { ctrlKey: true, shiftKey: true }), false)).toBe("Mod+Shift+k");
  expect(keyOf(pressed("k", { metaKey: true }), true)).toBe("Mod+k");
  expect(keyOf(pressed("?", { shiftKey: true }), false)).toBe("?");
  expect(keyOf(pressed("R", { shiftKey: true }), false)).toBe("Shift+r");
  expect(keyLabel("Mod+Shift+r", false)).toBe("Ctrl+Shift+R");
  expect(keyLabel("Mod+Enter", true)).toBe("⌘↵");
});

test("single letters are off while somebody writes, others are not", () => {
  const commands = [command("reply", { keys: ["r"] }), command("palette", { keys: ["Mod+k"] })];
  expect(commandFor(commands, "r", false)?.id).toBe("reply");
  expect(commandFor(commands, "r", true)).toBeUndefined();
  expect(commandFor(commands, "Mod+k", true)?.id).toBe("palette");
  expect([isPlain("Shift+r"), isPlain("?"), isPlain("Escape"), isPlain("Mod+1")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(isWriting(document.createElement("textarea"))).toBe(true);
  expect(isWriting(document.createElement("button"))).toBe(false);
});

test("single letters can be switched off as a group, and named keys stay", () => {
  const commands = [
    command("reply", { keys: ["r"] }),
    command("curl", { keys: ["Shift+y"] }),
    command("keys", { keys: ["?"] }),
    command("back", { keys: ["Escape"] }),
    command("tasks", { keys: ["Mod+2"] }),
  ];
  const found = ["r", "Shift+y", "?", "Escape", "Mod+2"].map(
    (keys) => commandFor(commands, keys, false, false)?.id,
  );
  expect(found).toEqual([undefined, undefined, undefined, "back", "tasks"]);
});

test("every key of the design leads somewhere", () => {
  const commands = allCommands({} as App, () => undefined);
  const keys = new Set(commands.flatMap((one) => one.keys));
  const designed =
    "Mod+k Mod+1 Mod+2 Mod+3 Mod+4 Mod+5 Mod+6 j k ArrowUp ArrowDown Enter Escape / r Shift+r Mod+Shift+r w n x s m p e y Shift+y [ ] ? Mod+,";
  expect(designed.split(" ").filter((one) => !keys.has(one))).toEqual([]);
});

test("a command that makes no sense now has no key and no line", () => {
  const commands = [command("cancel", { keys: ["x"], when: () => false })];
  expect(commandFor(commands, "x", false)).toBeUndefined();
  expect(search(commands, "")).toEqual([]);
});

test("the palette finds every word in any order, the earlier place first", () => {
  const commands = [command("Pin or unpin"), command("Open the pinned task"), command("Archive")];
  expect(search(commands, "pin").map((one) => one.id)).toEqual(["Pin or unpin", "Open the pinned task"]);
  expect(search(commands, "task open").map((one) => one.id)).toEqual(["Open the pinned task"]);
});

test("no two commands of the page share a key, and each has a name of its own", () => {
  const commands = allCommands({} as App, () => undefined);
  expect(clashes(commands)).toEqual([]);
  expect(new Set(commands.map((one) => one.id)).size).toBe(commands.length);
  expect(clashes([command("a", { keys: ["j"] }), command("b", { keys: ["j"] })])).toEqual(["j: a and b"]);
});
