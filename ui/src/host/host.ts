/**
 * What the page may ask of the program that shows it. Each kind of host has one file; only that file knows it.
 * The page listens first, then catches up: seeing a change twice does nothing.
 */
import type { Change } from "../api/types";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** How the change feed stands. `lost`: no engine answers, the host tries again by itself. */
export type Link = "connecting" | "live" | "lost" | "signed-out";

export type FeedEvent =
  | { type: "change"; change: Change }
  /** Changes may have been missed: read everything again. */
  | { type: "reset" }
  /** The engine that was listened to has ended, and the program behind the page runs one now. */
  | { type: "took-over" }
  | { type: "link"; link: Link };

export interface Host {
  readonly kind: "browser" | "window";
  /** One call of the API. `path` starts after `/api/v1`. Rejects with {@link CallError}. */
  request(method: Method, path: string, body?: unknown): Promise<unknown>;
  /**
   * The change feed, until the function it answers is called. Without a number: from now on.
   * `live` is told once the feed stands, and again each time it stands anew.
   */
  onChanges(apply: (event: FeedEvent) => void, afterSeq?: number): () => void;
  /** The user chose a task outside of the page, in a notice or the tray. Hosts without such places have none of it. */
  onOpenTask?(open: (task: string) => void): () => void;
  /** The user wants to watch a task, from the tray or by a link: the form, filled in as far as it is known. */
  onWatchTask?(open: (agent: string | null, taskId: string | null) => void): () => void;
  /** A sentence of the program that is behind the page. */
  onSay?(say: (text: string) => void): () => void;
  /** Writes a new file into the user's folder for downloads; where it is now. Browsers have downloads of their own. */
  saveFile?(name: string, content: Uint8Array): Promise<string>;
  /** Shows the page larger or smaller, in percent from 80 to 200. Browsers have keys of their own. */
  zoom?(percent: number): Promise<void>;
  /** What the engine knows is on the screen for the first time. */
  isUsable?(): void;
  /** Opens an http or https address in the user's browser. The page has asked the user before. */
  openExternal(url: string): Promise<void>;
}

/** A call that failed. `code` is the API's stable word, or one of ours: `no_engine`. */
export class CallError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status = 0,
  ) {
    super(message);
    this.name = "CallError";
  }
}

/** An answer of the API as a value, or as the error that it is. */
export function answer(status: number, body: unknown): unknown {
  if (status >= 200 && status < 300) return body;
  const error = (body as { error?: { code?: unknown; message?: unknown } } | null)?.error;
  const code = typeof error?.code === "string" ? error.code : `http_${String(status)}`;
  const message =
    typeof error?.message === "string" ? error.message : `the engine answered with ${String(status)}`;
  throw new CallError(code, message, status);
}
