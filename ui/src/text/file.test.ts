import { describe, expect, it } from "vitest";
import { isActive } from "./file";

describe("files of agents", () => {
  it("are told apart by what a double click would do", () => {
    const named = (name: string, mediaType = ""): boolean => isActive({ name, mediaType });
    for (const name of [
      "report.html",
      "x.HTM",
      "a.svg",
      "run.sh",
      "evil.desktop",
      "invoice_gnp.exe",
      "a.docm",
    ])
      expect(named(name), name).toBe(true);
    for (const name of ["report.md", "notes.txt", "plot.png", "data.csv", "table.xlsx", "html", "a.json"])
      expect(named(name), name).toBe(false);
  });

  it("are what their type says as well as what their name does", () => {
    expect(isActive({ name: "report", mediaType: "text/html; charset=utf-8" })).toBe(true);
    expect(isActive({ name: "report.txt", mediaType: "application/javascript" })).toBe(true);
    expect(isActive({ name: "report", mediaType: "application/pdf" })).toBe(false);
  });
});
