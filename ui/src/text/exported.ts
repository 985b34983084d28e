/** Files that the engine hands out, as they are given to the user. Pure. */
import type { ExportedFile } from "../api/types";
import { isActive, type SavedFile } from "./file";

function octets(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** The engine made the name safe. */
export function asFile({ name, mediaType, text, base64 }: ExportedFile): SavedFile {
  return {
    name,
    mediaType,
    content: () => (base64 == null ? new TextEncoder().encode(text ?? "") : octets(base64)),
  };
}

/** Those that can be saved without a question, and how many others there are. */
export function sortedOut(files: readonly ExportedFile[]): { plain: SavedFile[]; active: number } {
  const all = files.map(asFile);
  const plain = all.filter((file) => !isActive(file));
  return { plain, active: all.length - plain.length };
}
