/** Tells the engine which task the user looks at: a notice of what is on the screen already would only disturb. */
import type { Host } from "../host/host";

/** The engine forgets it after 10 s, for a page may be gone. */
const AGAIN_MS = 4_000;

/** What each engine was told last: who turns from a task to a screen without one says so too. */
const lastTold = new WeakMap<Host, string | null>();

/** Reports while the page has the focus, and once when it loses it. Ends with the function it answers. */
export function reportFocus(host: Host, task: string | null): () => void {
  const tell = (): void => {
    const seen = document.hasFocus() ? task : null;
    if (seen === null && (lastTold.get(host) ?? null) === null) return;
    lastTold.set(host, seen);
    // Without an engine there are no notices either.
    host.request("PUT", "/focus", { task: seen }).catch(() => undefined);
  };
  tell();
  const timer = setInterval(tell, AGAIN_MS);
  window.addEventListener("focus", tell);
  window.addEventListener("blur", tell);
  return () => {
    clearInterval(timer);
    window.removeEventListener("focus", tell);
    window.removeEventListener("blur", tell);
  };
}
