#!/usr/bin/env node
// Lists whose work is in the programs, with the words of each licence: what goes into the package beside our own.
//
//   scripts/licences.mjs > FILE
//
// Asked of what really gets in: the crates that both programs link on this system (no build tools, no macros that
// only run in the compiler), and the packages that the built page is made of. Fails for a crate or package that
// comes without words of a licence and without the name of one.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const ours = ["taskbell", "taskbell-desktop"];
// Set in a style sheet, so that no module names them.
const fonts = ["@fontsource-variable/inter"];

function run(command, args, cwd = root) {
  return execFileSync(command, args, { cwd, encoding: "utf8", maxBuffer: 1 << 28 });
}

/** The words of the licences in a folder: `[{ file, text }]`. */
function texts(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(licen[cs]e|copying|notice|copyright|unlicense)/i.test(entry.name))
    .filter((entry) => !/\.(json|rs|toml|html)$/i.test(entry.name))
    .map((entry) => ({
      file: entry.name,
      text: readFileSync(join(folder, entry.name), "utf8").replaceAll("\r\n", "\n").trim(),
    }))
    .sort((a, b) => (a.file < b.file ? -1 : 1));
}

function crates() {
  const metadata = JSON.parse(run("cargo", ["metadata", "--locked", "--format-version", "1"]));
  const known = new Map(metadata.packages.map((part) => [`${part.name} v${part.version}`, part]));
  const tree = run("cargo", [
    ...["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"],
    ...ours.flatMap((name) => ["--package", name]),
  ]);
  const names = new Set(tree.split("\n").map((line) => line.split(" ").slice(0, 2).join(" ")));
  return [...names]
    .map((name) => known.get(name))
    .filter((part) => part?.source)
    .map((part) => ({
      name: `${part.name} ${part.version}`,
      licence: part.license,
      home: part.repository ?? part.homepage,
      texts: texts(dirname(part.manifest_path)),
    }));
}

function pagePackages() {
  const ui = join(root, "ui");
  const scratch = mkdtempSync(join(tmpdir(), "taskbell-licences-"));
  try {
    const built = ["build", "--outDir", scratch, "--emptyOutDir", "--sourcemap", "--logLevel", "error"];
    run(join(ui, "node_modules/.bin/vite"), built, ui);
    const assets = join(scratch, "assets");
    const maps = readdirSync(assets).filter((name) => name.endsWith(".map"));
    const sources = maps.flatMap((name) => JSON.parse(readFileSync(join(assets, name), "utf8")).sources);
    const names = sources.map((source) => source.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
    if (!names.includes("svelte"))
      throw new Error("the page's source map does not say what the page is made of");
    return [...new Set([...names.filter(Boolean), ...fonts])].map((name) => {
      const folder = join(ui, "node_modules", name);
      const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      return {
        name: `${name} ${about.version}`,
        licence: about.license,
        home: typeof about.repository === "string" ? about.repository : about.repository?.url,
        texts: texts(folder),
      };
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const parts = [...crates(), ...pagePackages()].sort((a, b) => (a.name < b.name ? -1 : 1));
const silent = parts.filter((part) => !part.licence && part.texts.length === 0);
if (silent.length > 0) {
  console.error(
    `licences: nobody says under which licence these are: ${silent.map((part) => part.name).join(", ")}`,
  );
  process.exit(1);
}

// Many say the same words, broken into lines differently: those are printed once.
const numbers = new Map();
const number = (text) => {
  const words = text.replace(/\s+/g, " ");
  if (!numbers.has(words)) numbers.set(words, { at: numbers.size + 1, text });
  return numbers.get(words).at;
};
const lines = [
  "Taskbell is made with the work of others, listed here with the licence of each and the words that came with it.",
  "Where several licences are offered (OR), Taskbell takes the first that is MIT or Apache-2.0, else the one named.",
  "Every part is used unchanged; its source is published under its name and version, and where its line leads.",
  "",
];
for (const part of parts) {
  lines.push(`${part.name}: ${part.licence ?? "see its words"}${part.home ? `, ${part.home}` : ""}`);
  const words = part.texts.map(({ file, text }) => `${file} [${number(text)}]`);
  lines.push(`    ${words.length > 0 ? words.join(", ") : "came without a copy of it"}`);
}
for (const { text, at } of numbers.values()) lines.push("", "=".repeat(78), `[${at}]`, "", text);
process.stdout.write(`${lines.join("\n")}\n`);
