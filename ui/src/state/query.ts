/** What may be typed to find rows, as far as the page completes it. The engine reads it and says what is wrong. Pure. */

export interface Key {
  key: string;
  meaning: string;
  values: readonly string[];
}

/** What could stand where the caret is. */
export interface Completion {
  /** Replaces the text from `from` to `to`. */
  text: string;
  meaning: string;
  from: number;
  to: number;
}

const MOST = 12;

const quote = (value: string): string =>
  /^[^\s",]+$/.test(value) ? value : `"${value.replaceAll('"', "")}"`;

/** The keys or the values that fit the word before the caret, in their order. */
export function completions(text: string, caret: number, keys: readonly Key[]): Completion[] {
  const before = text.slice(0, caret);
  // Inside of quotes words are words.
  if ((before.match(/"/g)?.length ?? 0) % 2 === 1) return [];
  const word = /\S*$/.exec(before)?.[0] ?? "";
  const bare = word.replace(/^-/, "");
  const start = caret - bare.length;
  const end = caret + (/^[^\s,]*/.exec(text.slice(caret))?.[0].length ?? 0);
  const colon = bare.indexOf(":");
  if (colon < 0) {
    if (bare === "") return [];
    return keys
      .filter(({ key }) => key.startsWith(bare.toLocaleLowerCase()))
      .map(({ key, meaning }) => ({ text: `${key}:`, meaning, from: start, to: end }));
  }
  const known = keys.find(({ key }) => key === bare.slice(0, colon).toLocaleLowerCase());
  if (!known) return [];
  const given = bare.slice(colon + 1).split(",");
  const last = given.at(-1) ?? "";
  const fitting = known.values.filter(
    (value) =>
      value.toLocaleLowerCase().includes(last.toLocaleLowerCase()) && !given.slice(0, -1).includes(value),
  );
  // Who has written it out needs no help.
  if (fitting.length === 1 && fitting[0] === last) return [];
  return fitting
    .slice(0, MOST)
    .map((value) => ({ text: quote(value), meaning: "", from: caret - last.length, to: end }));
}

/** The text with the completion in it, and where the caret is then. A value is followed by a blank, a key is not. */
export function completed(
  text: string,
  { text: put, from, to }: Completion,
): { text: string; caret: number } {
  const rest = text.slice(to);
  const blank = put.endsWith(":") || rest.startsWith(" ") ? "" : " ";
  return { text: text.slice(0, from) + put + blank + rest, caret: from + put.length + blank.length };
}
