/** The desktop window as a host. The only file that knows Tauri. */
import { Channel, invoke, isTauri } from "@tauri-apps/api/core";
import type { Change } from "../api/types";
import { answer, CallError, type FeedEvent, type Host } from "./host";

const API = "/api/v1";

export const inWindow = isTauri;

/** What the program tells through its one channel. */
type Message =
  | { type: "changes"; changes: Change[] }
  | { type: "reset" }
  | { type: "link"; link: "live" | "lost" }
  | { type: "took-over" }
  | { type: "open-task"; task: string };

let openTask: ((task: string) => void) | undefined;
let chosen: string | undefined;

/** A task that the user chose outside of the page, in a notice or the tray, kept until the page can show it. */
function choose(task: string): void {
  if (openTask) openTask(task);
  else chosen = task;
}

/** A command's failure as the error of a call. */
function failed(error: unknown): CallError {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return typeof code === "string" && typeof message === "string"
    ? new CallError(code, message)
    : new CallError("no_engine", "the program behind this window does not answer");
}

function onChanges(apply: (event: FeedEvent) => void, afterSeq?: number): () => void {
  let stopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const channel = new Channel<Message>();
  channel.onmessage = (message) => {
    if (stopped) return;
    switch (message.type) {
      case "changes":
        for (const change of message.changes) apply({ type: "change", change });
        break;
      case "reset":
      case "took-over":
      case "link":
        apply(message);
        break;
      case "open-task":
        choose(message.task);
        break;
    }
  };
  const listen = (): void => {
    invoke("changes", { after: afterSeq ?? null, channel }).catch(() => {
      if (stopped) return;
      apply({ type: "link", link: "lost" });
      timer = setTimeout(listen, 2000);
    });
  };
  listen();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

export const tauriHost: Host = {
  kind: "window",
  request: async (method, path, body) => {
    const call = {
      method,
      path: API + path,
      body: method === "POST" || method === "PUT" ? (body ?? {}) : null,
    };
    const { status, body: value } = await invoke<{ status: number; body: unknown }>(
      "api_request",
      call,
    ).catch((error: unknown) => Promise.reject(failed(error)));
    return answer(status, value);
  },
  onChanges,
  onOpenTask: (open) => {
    openTask = open;
    if (chosen !== undefined) open(chosen);
    chosen = undefined;
    return () => {
      openTask = undefined;
    };
  },
  isUsable: () => {
    show("tasks");
  },
  openExternal: (url) =>
    invoke<undefined>("open_external", { url }).catch((error: unknown) => Promise.reject(failed(error))),
};

/** Tells, once the next frame is on the screen, how far the page has come. */
function show(what: "frame" | "tasks"): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => void invoke("page_shows", { what }).catch(() => undefined)),
  );
}

// The program gives a hint when this does not come: some graphics drivers show an empty window.
if (isTauri()) show("frame");
