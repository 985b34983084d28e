/**
 * How this page looks and which keys it takes. It belongs to the screen that it is shown on, so it is kept by the page
 * and not by the engine. What cannot be kept holds until the page is closed.
 */

export type Theme = "system" | "light" | "dark";
export type Contrast = "system" | "more" | "usual";
export type Density = "usual" | "tight";

export interface Preferences {
  theme: Theme;
  contrast: Contrast;
  density: Density;
  /** Keys without Ctrl, Command or Alt. */
  letters: boolean;
  /** Of the window, in percent; a browser has its own. */
  zoom: number;
}

export const DEFAULTS: Readonly<Preferences> = {
  theme: "system",
  contrast: "system",
  density: "usual",
  letters: true,
  zoom: 100,
};

export const ZOOMS: readonly number[] = [80, 90, 100, 110, 125, 150, 175, 200];

const KEY = "taskbell.preferences";

const oneOf = <T>(value: unknown, words: readonly T[], otherwise: T): T =>
  words.find((word) => word === value) ?? otherwise;

/** What was kept, as far as it can be read: a stranger's or an older version's text changes nothing. */
export function read(text: string | null): Preferences {
  let kept: Partial<Record<keyof Preferences, unknown>> = {};
  try {
    const value: unknown = JSON.parse(text ?? "{}");
    if (typeof value === "object" && value !== null) kept = value;
  } catch {
    // Nothing that can be read was kept.
  }
  return {
    theme: oneOf(kept.theme, ["system", "light", "dark"] as const, DEFAULTS.theme),
    contrast: oneOf(kept.contrast, ["system", "more", "usual"] as const, DEFAULTS.contrast),
    density: oneOf(kept.density, ["usual", "tight"] as const, DEFAULTS.density),
    letters: typeof kept.letters === "boolean" ? kept.letters : DEFAULTS.letters,
    zoom: oneOf(kept.zoom, ZOOMS, DEFAULTS.zoom),
  };
}

/** The scheme that is drawn. */
export function schemeOf(theme: Theme, systemIsDark: boolean): "light" | "dark" {
  return theme === "system" ? (systemIsDark ? "dark" : "light") : theme;
}

export function contrastOf(contrast: Contrast, systemWantsMore: boolean): "more" | "usual" {
  return contrast === "system" ? (systemWantsMore ? "more" : "usual") : contrast;
}

function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const more = matchMedia("(prefers-contrast: more)");

class Chosen {
  now = $state<Preferences>(read(kept()));

  /** The height of a row, in pixels. */
  get row(): number {
    return this.now.density === "tight" ? 36 : 44;
  }

  set(change: Partial<Preferences>): void {
    this.now = { ...this.now, ...change };
    try {
      localStorage.setItem(KEY, JSON.stringify(this.now));
    } catch {
      // Storage that is full or switched off: it holds for this page.
    }
    this.apply();
  }

  /** Puts it on the document, where the tokens of the look are chosen by it. */
  apply(): void {
    const { dataset } = document.documentElement;
    dataset["scheme"] = schemeOf(this.now.theme, dark.matches);
    dataset["contrast"] = contrastOf(this.now.contrast, more.matches);
    dataset["density"] = this.now.density;
  }

  /** Follows the system, and what another page of the same browser sets. Ends with the function it answers. */
  start(): () => void {
    const apply = (): void => {
      this.apply();
    };
    const takeOver = (event: StorageEvent): void => {
      if (event.key !== KEY) return;
      this.now = read(event.newValue);
      this.apply();
    };
    apply();
    dark.addEventListener("change", apply);
    more.addEventListener("change", apply);
    window.addEventListener("storage", takeOver);
    return () => {
      dark.removeEventListener("change", apply);
      more.removeEventListener("change", apply);
      window.removeEventListener("storage", takeOver);
    };
  }
}

export const preferences = new Chosen();
