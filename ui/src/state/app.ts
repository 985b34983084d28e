/** What every component gets at: the model, the view and the actions, through Svelte's context. */
import { getContext, setContext } from "svelte";
import type { Command } from "../commands/registry";
import type { Actions } from "./actions";
import type { Model } from "./model.svelte";
import type { View } from "./view.svelte";

export interface App {
  model: Model;
  view: View;
  actions: Actions;
  /** Everything that can be done, with its keys. */
  commands: () => readonly Command[];
}

const KEY = Symbol("app");

export function provideApp(app: App): void {
  setContext(KEY, app);
}

export function useApp(): App {
  return getContext<App>(KEY);
}
