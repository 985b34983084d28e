/** Rows that the engine was asked for by a search, and asked for anew when something of them changes. */
import type { Page } from "../api/types";
import { CallError } from "../host/host";
import { messageOf } from "./actions";

const PAGE = 200;
const MOST = 1000;
/** While somebody types. */
const PAUSE_MS = 120;

export class Found<T> {
  /** What is asked for; empty: nothing is. */
  query = $state("");
  items = $state.raw<readonly T[]>([]);
  next = $state<string | null>(null);
  /** The query that `items` answer. */
  answered = $state<string | null>(null);
  /** What is wrong with the query, in a sentence. The rows of the last one that was right stay. */
  refused = $state<string | null>(null);
  /** Why it could not be read anew. */
  problem = $state<string | null>(null);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;

  constructor(
    private readonly ask: (query: { q: string; limit: number; cursor?: string }) => Promise<Page<T>>,
  ) {}

  /** Asks for it once nobody has typed for a moment. */
  want(query: string): void {
    if (query === this.query) return;
    this.query = query;
    clearTimeout(this.timer);
    if (query === "") {
      this.asked += 1;
      this.items = [];
      this.next = this.answered = this.refused = this.problem = null;
      return;
    }
    this.timer = setTimeout(() => void this.read(), PAUSE_MS);
  }

  /** As many as are shown already. An answer to an earlier question is no answer. */
  async read(): Promise<void> {
    const { query } = this;
    if (query === "") return;
    this.asked += 1;
    const { asked } = this;
    const many = this.answered === query ? this.items.length : 0;
    try {
      const page = await this.ask({ q: query, limit: Math.min(MOST, Math.max(PAGE, many)) });
      if (asked !== this.asked) return;
      this.items = page.items;
      this.next = page.next;
      this.answered = query;
      this.refused = this.problem = null;
    } catch (error) {
      if (asked !== this.asked) return;
      if (error instanceof CallError && error.code === "bad_query") this.refused = messageOf(error);
      else this.problem = messageOf(error);
    }
  }

  /** Puts newer rows in the place of some. */
  replace(by: (item: T) => T): void {
    if (this.items.length > 0) this.items = this.items.map(by);
  }

  async more(): Promise<void> {
    const { query, next } = this;
    if (next === null || this.answered !== query) return;
    const { asked } = this;
    try {
      const page = await this.ask({ q: query, limit: PAGE, cursor: next });
      if (asked !== this.asked) return;
      this.items = [...this.items, ...page.items];
      this.next = page.next;
    } catch (error) {
      this.problem = messageOf(error);
    }
  }
}
