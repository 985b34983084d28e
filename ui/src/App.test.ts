import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import App from "./App.svelte";
import type { Host } from "./host/host";

let page: Record<string, unknown> | undefined;

function hostThat(answers: () => Promise<unknown>): Host {
  return {
    kind: "window",
    request: answers,
    onChanges: () => () => undefined,
    openExternal: () => Promise.resolve(),
  };
}

function show(host: Host): HTMLElement {
  page = mount(App, { target: document.body, props: { host } });
  flushSync();
  const version = document.querySelector<HTMLElement>("[data-testid=version]");
  if (!version) throw new Error("the page shows no version line");
  return version;
}

afterEach(async () => {
  if (page) await unmount(page);
  page = undefined;
  document.body.replaceChildren();
});

test("the page shows the version that its program states", async () => {
  const line = show(hostThat(() => Promise.resolve({ version: "4.5.6" })));
  expect(line.textContent).toContain("Reading the version");
  await vi.waitFor(() => expect(line.textContent?.trim()).toBe("Version 4.5.6"));
});

test("a program that does not answer is said, not hidden behind an empty line", async () => {
  const line = show(hostThat(() => Promise.reject(new Error("no such command"))));
  await vi.waitFor(() => expect(line.textContent).toContain("does not answer"));
});

test("text from the program is shown as text", async () => {
  const line = show(hostThat(() => Promise.resolve({ version: "<img src=x>" })));
  await vi.waitFor(() => expect(line.textContent).toContain("<img src=x>"));
  expect(line.querySelector("img")).toBeNull();
});
