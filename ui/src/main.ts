import { mount } from "svelte";
import App from "./App.svelte";
import { browserHost, logIn } from "./host/browser";
import { inWindow, tauriHost } from "./host/tauri";
import { messageOf } from "./state/actions";
import { preferences } from "./state/preferences.svelte";
import "./styles/tokens.css";
import "./styles/base.css";

preferences.apply();

const target = document.getElementById("app");
if (!target) throw new Error("index.html has no element with the id app");

const host = inWindow() ? tauriHost : browserHost;
const refused = host.kind === "browser" ? await logIn().then(() => null, messageOf) : null;

mount(App, { target, props: { host, refused } });
