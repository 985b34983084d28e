/** The desktop window as a host. The only file that knows Tauri. */
import { invoke, isTauri } from "@tauri-apps/api/core";
import { CallError, type Host } from "./host";

export const inWindow = isTauri;

/** The window's program has no API yet. */
export const tauriHost: Host = {
  kind: "window",
  request: async (_method, path) => {
    if (path.startsWith("/hello")) return { hello: "", version: await invoke<string>("app_version") };
    throw new CallError("no_engine", "this window shows no tasks yet");
  },
  onChanges: (apply) => {
    apply({ type: "link", link: "lost" });
    return () => undefined;
  },
  openExternal: () => Promise.reject(new CallError("not_permitted", "this window opens no addresses yet")),
};
