/** Which rows of a long list are in sight. Pure. Heights are pixels. */

/** Where each row begins, and after the last one where the list ends. */
export function offsetsOf<T>(items: readonly T[], heightOf: (item: T) => number): number[] {
  const offsets = [0];
  let end = 0;
  for (const item of items) offsets.push((end += heightOf(item)));
  return offsets;
}

/** The rows to draw: those in sight and some on both sides, so that a quick scroll shows no hole. */
export function windowOf(
  offsets: readonly number[],
  top: number,
  height: number,
  spare = 400,
): { from: number; to: number } {
  const rows = offsets.length - 1;
  const from = Math.max(0, firstOver(offsets, top - spare) - 1);
  const to = Math.min(rows, firstOver(offsets, top + height + spare));
  return { from, to: Math.max(from, to) };
}

/** The first place whose offset is over `limit`. */
function firstOver(offsets: readonly number[], limit: number): number {
  let [low, high] = [0, offsets.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((offsets[middle] ?? 0) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
