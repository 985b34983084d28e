/** The inbox's rows, read anew when a callback is told of. */
import type { Calls } from "../api/calls";
import type { Callback } from "../api/types";
import { messageOf } from "./actions";

const PAGE = 200;
const MOST = 1000;

export class InboxRows {
  items = $state.raw<readonly Callback[]>([]);
  next = $state<string | null>(null);
  /** When the rows were last read, in milliseconds. */
  readAt = $state<number | null>(null);
  problem = $state<string | null>(null);
  private busy = false;
  private again = false;

  constructor(private readonly calls: Calls) {}

  /** Errors are shown where the rows are; what was read before stays. */
  async read(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    do {
      this.again = false;
      try {
        // As many as are shown already, so that nothing disappears under the reader.
        const limit = Math.min(MOST, Math.max(PAGE, this.items.length));
        const page = await this.calls.inbox({ limit });
        this.items = page.items;
        this.next = page.next;
        this.readAt = Date.now();
        this.problem = null;
      } catch (error) {
        this.problem = messageOf(error);
      }
    } while (this.again);
    this.busy = false;
  }

  async more(): Promise<void> {
    if (this.next === null || this.busy) return;
    this.busy = true;
    try {
      const page = await this.calls.inbox({ limit: PAGE, cursor: this.next });
      this.items = [...this.items, ...page.items];
      this.next = page.next;
    } catch (error) {
      this.problem = messageOf(error);
    }
    this.busy = false;
  }
}
