import { mount } from "svelte";
import App from "./App.svelte";
import { tauriHost } from "./host/tauri";
import "./tokens.css";

const target = document.getElementById("app");
if (!target) throw new Error("index.html has no element with the id app");

mount(App, { target, props: { host: tauriHost } });
