/**
 * Reads a pasted line: an address, or a curl command with its Authorization header; and writes one. Pure. Nothing is
 * run or fetched.
 */
import type { Agent, Credential, TaskSummary } from "../api/types";

export interface Pasted {
  url: string;
  /** A name to suggest. */
  name: string;
  credential?: Credential;
}

/** The words of a shell line: quotes, backslashes and continued lines, and no more than that. */
export function words(line: string): string[] {
  const found: string[] = [];
  let word: string | null = null;
  let quote: "'" | '"' | null = null;
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at);
    if (quote === "'") {
      if (char === "'") quote = null;
      else word = (word ?? "") + char;
    } else if (char === "\\" && at + 1 < line.length) {
      at += 1;
      const next = line.charAt(at);
      if (next === "\r" && line.charAt(at + 1) === "\n") at += 1;
      else if (next !== "\n")
        word = (word ?? "") + (quote === '"' && !'"\\$`'.includes(next) ? char + next : next);
    } else if (quote === '"') {
      if (char === '"') quote = null;
      else word = (word ?? "") + char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== null) found.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (word !== null) found.push(word);
  return found;
}

/** Options of curl that take a value, so that the value is not taken for the address. */
const WITH_VALUE = new Set(
  "-X --request -d --data --data-raw --data-binary --json -o --output -A --user-agent -e --referer -b --cookie -m --max-time --connect-timeout -x --proxy --cacert -T --upload-file -F --form -w --write-out".split(
    " ",
  ),
);

/** Headers that say nothing of who calls. */
const PLAIN = new Set([
  "content-type",
  "accept",
  "user-agent",
  "a2a-version",
  "a2a-extensions",
  "host",
  "content-length",
]);

function asUrl(text: string): URL | null {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  return url && (url.protocol === "http:" || url.protocol === "https:") && url.hostname !== "" ? url : null;
}

/** A name of lower-case letters, digits and hyphens, from the host. */
export function nameFor(url: URL): string {
  const host = /^[\d.]+$|^\[|^localhost$/.test(url.hostname)
    ? `agent-${url.port || url.hostname.replaceAll(/[^a-z0-9]+/g, "-")}`
    : (url.hostname.replace(/^(www|api|agents?)\.(?=[^.]+\.[^.]+$)/, "").split(".")[0] ?? "agent");
  return (
    host
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, "-")
      .replaceAll(/^-+|-+$/g, "")
      .slice(0, 40) || "agent"
  );
}

function credentialOf(headers: ReadonlyMap<string, string>, user: string | null): Credential | undefined {
  const authorization = headers.get("authorization");
  const bearer = /^bearer\s+(.+)$/i.exec(authorization ?? "")?.[1];
  if (bearer) return { kind: "bearer", token: bearer.trim() };
  const basic = /^basic\s+(.+)$/i.exec(authorization ?? "")?.[1];
  const pair = user ?? (basic ? decodeBase64(basic.trim()) : null);
  if (pair?.includes(":")) {
    const colon = pair.indexOf(":");
    return { kind: "basic", user: pair.slice(0, colon), password: pair.slice(colon + 1) };
  }
  const others = [...headers].filter(([name]) => !PLAIN.has(name));
  return others.length > 0 ? { kind: "headers", headers: Object.fromEntries(others) } : undefined;
}

function decodeBase64(text: string): string | null {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)));
  } catch {
    return null;
  }
}

/** Null where no http or https address is found. */
export function readPasted(line: string): Pasted | null {
  const all = words(line.trim().replace(/^\$\s+/, ""));
  const isCurl = /(^|\/)curl$/.test(all[0] ?? "");
  const headers = new Map<string, string>();
  let user: string | null = null;
  let address: URL | null = null;
  for (let at = isCurl ? 1 : 0; at < all.length; at += 1) {
    const word = all[at] ?? "";
    const value = (long: string, short: string): string | null => {
      if (word === long || word === short) return all[(at += 1)] ?? "";
      if (word.startsWith(`${long}=`)) return word.slice(long.length + 1);
      return word.startsWith(short) && !word.startsWith("--") ? word.slice(short.length) : null;
    };
    const header = value("--header", "-H");
    if (header !== null) {
      const colon = header.indexOf(":");
      if (colon > 0) headers.set(header.slice(0, colon).trim().toLowerCase(), header.slice(colon + 1).trim());
      continue;
    }
    const bearer = word === "--oauth2-bearer" ? (all[(at += 1)] ?? "") : null;
    if (bearer !== null) {
      headers.set("authorization", `Bearer ${bearer}`);
      continue;
    }
    const pair = value("--user", "-u");
    if (pair !== null) {
      user = pair;
      continue;
    }
    const named = word === "--url" ? (all[(at += 1)] ?? "") : null;
    if (named !== null) address ??= asUrl(named);
    else if (WITH_VALUE.has(word)) at += 1;
    else if (!word.startsWith("-")) address ??= asUrl(word);
  }
  if (!address) return null;
  // What the address itself says of who calls belongs into the keyring, not into the address.
  if (address.username !== "") {
    user ??= `${decodeURIComponent(address.username)}:${decodeURIComponent(address.password)}`;
    address.username = "";
    address.password = "";
  }
  const credential = credentialOf(headers, user);
  return { url: address.href, name: nameFor(address), ...(credential ? { credential } : {}) };
}

/** A word of a shell line. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The line that reads a task at its agent, in the words of the agent's own version. Secrets are three stars. */
export function taskAsCurl(task: Pick<TaskSummary, "id">, agent: Agent): string {
  const dialect = agent.pinnedDialect ?? agent.dialect;
  const version = dialect === "1.0" ? [`-H ${quoted("A2A-Version: 1.0")}`] : [];
  const credential = ((): string[] => {
    switch (agent.credential?.kind) {
      case undefined:
        return [];
      case "basic":
        return [`-H ${quoted("Authorization: Basic ***")}`];
      case "headers":
        return [`-H ${quoted("***: ***")}`];
      default:
        return [`-H ${quoted("Authorization: Bearer ***")}`];
    }
  })();
  const address = agent.interfaceUrl ?? agent.url;
  if (agent.binding === "HTTP+JSON") {
    const place = `${address.replace(/\/$/, "")}/tasks/${encodeURIComponent(task.id)}`;
    return ["curl", ...version, ...credential, quoted(place)].join(" \\\n  ");
  }
  const method = dialect === "0.3" ? "tasks/get" : "GetTask";
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { id: task.id } });
  return [
    "curl -X POST",
    `-H ${quoted("Content-Type: application/json")}`,
    ...version,
    ...credential,
    `--data-raw ${quoted(body)}`,
    quoted(address),
  ].join(" \\\n  ");
}
