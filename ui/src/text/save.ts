import { fileName } from "./clean";

/** Gives the user a file. A browser asks where, as for any download. The content is never shown as a page. */
export function save(content: string | Uint8Array<ArrayBuffer>, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName(name);
  link.click();
  URL.revokeObjectURL(url);
}
