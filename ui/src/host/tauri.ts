/** The desktop window as a host. The only file that knows Tauri. */
import { invoke, isTauri } from "@tauri-apps/api/core";
import { CallError, type Host } from "./host";

export const inWindow = isTauri;

/** The window's program has no API yet. */
export const tauriHost: Host = {
  kind: "window",
  request: async () => {
    const version = await invoke<string>("app_version");
    throw new CallError("no_engine", `taskbell ${version} shows no tasks in this window yet`);
  },
  onChanges: (apply) => {
    apply({ type: "link", link: "lost" });
    return () => undefined;
  },
  openExternal: () => Promise.reject(new CallError("not_permitted", "this window opens no addresses yet")),
};
