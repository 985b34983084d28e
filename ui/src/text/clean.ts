/**
 * Agents' words as the API has them, made fit to look at: what could reorder, hide or command goes, as the engine does
 * it for the tree it builds. For the few places that show words the engine did not clean.
 */

const SEQUENCES =
  // Escape sequences of terminals (ECMA-48 §5): control strings, control sequences, short ones.
  /(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\p{Cc}]*(?:\u0007|\u009c|\u001b\\)?|(?:\u001b\[|\u009b)[ -?]*[@-~]?|\u001b[ -/]*[0-~]?/gu;
const BREAKS = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;
const UNSEEN =
  /(?![\n\t])\p{Cc}|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|(?<=^|\p{ASCII})[\u200c\u200d\ufe0e\ufe0f]+/gu;

/** With its lines. */
export function clean(text: string): string {
  return text.replaceAll(SEQUENCES, "").replaceAll(BREAKS, "\n").replaceAll(UNSEEN, "");
}

/** Characters that show nothing and can spell something: two of the kinds made for it, or many that only space. */
const SPELLED = /[\u{e0000}-\u{e0fff}]{2}|[\u200b-\u200f\u2060-\u206f\ufeff]{8}/u;
/** A flag of a region is spelled like that (UTS 51). */
const FLAG = /\u{1f3f4}[\u{e0020}-\u{e007e}]{1,6}\u{e007f}/gu;

/** Whether text carries more text that nobody can see. It is never shown, but somebody may want to know. */
export function hidesText(text: string): boolean {
  return SPELLED.test(text.replaceAll(FLAG, ""));
}

/** For names and titles. */
export function oneLine(text: string): string {
  return clean(text).replaceAll(/\s+/gu, " ").trim();
}

/** JSON that shows by its number what could not be seen. It stays the same JSON. */
export function visibleJson(json: string): string {
  return json.replaceAll(
    /(?![\n\t])\p{Cc}|\p{Cf}|[\u2028\u2029\u3164\ufe00-\ufe0f]|[\u{e0000}-\u{e0fff}]/gu,
    (hidden) =>
      Array.from({ length: hidden.length }, (_, at) => hidden.charCodeAt(at))
        .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
        .join(""),
  );
}

/** A name for a file, never a path, a device or a stream of one. */
export function fileName(given: string, otherwise = "file"): string {
  const last = oneLine(given).split(/[/\\]/).at(-1) ?? "";
  const safe = last
    .replaceAll(/[:*?"<>|]/g, "_")
    .replace(/^[.\s]+/, "")
    .replace(/[.\s]+$/, "")
    .slice(0, 200);
  if (safe === "") return otherwise;
  return /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i.test(safe.replaceAll("_", ".")) ? `_${safe}` : safe;
}

const LONG_WORD = /\S{400,}/u;

/** A word of any length in pieces that a line may be broken between: laying out one of 200 kB takes seconds. */
export function breakable(text: string): string[] {
  if (!LONG_WORD.test(text)) return [text];
  return text.match(/[^]{1,200}(?![\udc00-\udfff])/g) ?? [text];
}
