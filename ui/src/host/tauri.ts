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
  | { type: "open-task"; task: string }
  | { type: "watch-task"; agent: string | null; task: string | null }
  | { type: "say"; text: string };

/** A wish from outside of the page, of a notice, the tray or a link, kept until the page can meet it. */
class Wish<T extends unknown[]> {
  private meet: ((...wish: T) => void) | undefined;
  private kept: T | undefined;

  take(...wish: T): void {
    if (this.meet) this.meet(...wish);
    else this.kept = wish;
  }

  listen(meet: (...wish: T) => void): () => void {
    this.meet = meet;
    if (this.kept !== undefined) meet(...this.kept);
    this.kept = undefined;
    return () => {
      this.meet = undefined;
    };
  }
}

const openTask = new Wish<[string]>();
const watchTask = new Wish<[string | null, string | null]>();
const said = new Wish<[string]>();

/** Octets as Base64, in pieces that a call may have as arguments. */
function base64(content: Uint8Array): string {
  let text = "";
  for (let at = 0; at < content.length; at += 8192)
    text += String.fromCharCode(...content.subarray(at, at + 8192));
  return btoa(text);
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
        openTask.take(message.task);
        break;
      case "watch-task":
        watchTask.take(message.agent, message.task);
        break;
      case "say":
        said.take(message.text);
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
  onOpenTask: (open) => openTask.listen(open),
  onWatchTask: (open) => watchTask.listen(open),
  onSay: (say) => said.listen(say),
  saveFile: (name, content) =>
    invoke<string>("save_file", { name, content: base64(content) }).catch((error: unknown) =>
      Promise.reject(failed(error)),
    ),
  zoom: (percent) =>
    invoke<undefined>("set_zoom", { percent }).catch((error: unknown) => Promise.reject(failed(error))),
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
