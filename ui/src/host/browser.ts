/** A browser's page as a host: the same origin's API, a cookie that no script can read, and an event stream. */
import type { Change } from "../api/types";
import { answer, CallError, type FeedEvent, type Host, type Method } from "./host";

const API = "/api/v1";
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

async function request(method: Method, path: string, body?: unknown): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(API + path, {
      method,
      credentials: "same-origin",
      ...(method === "POST" || method === "PUT"
        ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) }
        : {}),
    });
  } catch {
    throw new CallError("no_engine", "the engine does not answer");
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let value: unknown = null;
  try {
    value = text === "" ? null : JSON.parse(text);
  } catch {
    throw new CallError("no_engine", "something else than the engine answers at this address");
  }
  return answer(response.status, value);
}

/** Trades the nonce of the address for a session. It leaves the address, and the history, at once. */
export async function logIn(): Promise<void> {
  const nonce = new URLSearchParams(location.hash.slice(1)).get("login");
  if (nonce === null) return;
  history.replaceState(null, "", location.pathname);
  await request("POST", "/session", { nonce });
}

function onChanges(apply: (event: FeedEvent) => void, afterSeq?: number): () => void {
  let after = afterSeq;
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let stopped = false;

  const listen = (): void => {
    const query = after === undefined ? "" : `?after=${String(after)}`;
    source = new EventSource(`${API}/changes${query}`);
    source.onopen = () => {
      failures = 0;
      apply({ type: "link", link: "live" });
    };
    source.onmessage = (message: MessageEvent<string>) => {
      const change = JSON.parse(message.data) as Change;
      after = change.seq;
      apply({ type: "change", change });
    };
    source.addEventListener("reset", () => {
      after = undefined;
      apply({ type: "reset" });
    });
    // The browser's own retry knows neither our wait nor why it was refused, so each failure starts anew.
    source.onerror = () => {
      source?.close();
      void retry();
    };
  };

  const retry = async (): Promise<void> => {
    const signedOut = await request("GET", "/health").then(
      () => false,
      (error: unknown) => error instanceof CallError && error.status === 401,
    );
    if (stopped) return;
    if (signedOut) {
      apply({ type: "link", link: "signed-out" });
      return;
    }
    apply({ type: "link", link: "lost" });
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
    failures += 1;
    timer = setTimeout(listen, wait / 2 + (Math.random() * wait) / 2);
  };

  listen();
  return () => {
    stopped = true;
    source?.close();
    clearTimeout(timer);
  };
}

export const browserHost: Host = {
  kind: "browser",
  request,
  onChanges,
  openExternal: (url) => {
    window.open(url, "_blank", "noopener,noreferrer");
    return Promise.resolve();
  },
};
