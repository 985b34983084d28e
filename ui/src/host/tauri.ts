/** The desktop window as a host. The only file that knows Tauri. */
import { invoke } from "@tauri-apps/api/core";
import type { Host } from "./host";

export const tauriHost: Host = {
  appVersion: () => invoke<string>("app_version"),
};
