/**
 * Keys as text: `j`, `Shift+r`, `Mod+k`, `Mod+Shift+r`, `?`. `Mod` is Ctrl, on a Mac Command. Pure.
 * A character that needs Shift on some keyboards (`?`) is written as the character.
 */

export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

const isMac = typeof navigator !== "undefined" && /Mac|iP(hone|ad)/.test(navigator.userAgent);

/** The text of what was pressed. */
export function keyOf(event: Pressed, mac = isMac): string {
  const mod = mac ? event.metaKey : event.ctrlKey;
  const letter = /^[a-z]$/i.test(event.key);
  const key = letter ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && (letter || key.length > 1);
  return [mod ? "Mod+" : "", event.altKey ? "Alt+" : "", shift ? "Shift+" : "", key].join("");
}

/** A key that writes something in a text field. */
export function isPlain(keys: string): boolean {
  return !keys.startsWith("Mod+") && !keys.startsWith("Alt+") && keys.replace("Shift+", "").length === 1;
}

const NAMES: Record<string, string> = {
  Enter: "↵",
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
};

/** As written on this system's keyboards. */
export function keyLabel(keys: string, mac = isMac): string {
  const parts = keys.split("+");
  const last = parts.pop() ?? "";
  const named = NAMES[last] ?? (parts.length > 0 && last.length === 1 ? last.toUpperCase() : last);
  if (mac) {
    const symbols: Record<string, string> = { Mod: "⌘", Shift: "⇧", Alt: "⌥" };
    return parts.map((part) => symbols[part] ?? part).join("") + named;
  }
  return [...parts.map((part) => (part === "Mod" ? "Ctrl" : part)), named].join("+");
}

/** Single letters are off while somebody writes. */
export function isWriting(target: unknown): boolean {
  if (typeof HTMLElement === "undefined" || !(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) {
    return !["checkbox", "radio", "button", "submit", "reset", "range"].includes(target.type);
  }
  return (
    target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable
  );
}
