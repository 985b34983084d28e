import { fileName } from "./clean";

/** Gives the user a file. A browser asks where, as for any download. No browser shows this type as a page. */
export function save(content: string | Uint8Array<ArrayBuffer>, name: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName(name);
  link.click();
  URL.revokeObjectURL(url);
}
