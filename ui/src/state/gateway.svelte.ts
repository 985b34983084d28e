/** What goes through the gateway: clients, their requests, and the callbacks that leave for them. */
import type { Calls } from "../api/calls";
import type { Client, Delivery, Page, Target, Traffic } from "../api/types";
import { messageOf } from "./actions";

const PAGE = 200;
const MOST = 1000;

/** A list that grows at its head, and of which the user asks for earlier rows. */
export class Recent<T extends { id: number }> {
  items = $state.raw<readonly T[]>([]);
  next = $state<string | null>(null);

  constructor(private readonly ask: (query: { limit: number; cursor?: string }) => Promise<Page<T>>) {}

  /** As many as are shown already, so that nothing disappears under the reader. */
  async read(): Promise<void> {
    const page = await this.ask({ limit: Math.min(MOST, Math.max(PAGE, this.items.length)) });
    this.items = page.items;
    this.next = page.next;
  }

  async more(): Promise<void> {
    if (this.next === null) return;
    const page = await this.ask({ limit: PAGE, cursor: this.next });
    const known = new Set(this.items.map((item) => item.id));
    this.items = [...this.items, ...page.items.filter((item) => !known.has(item.id))];
    this.next = page.next;
  }
}

export class GatewayRows {
  clients = $state.raw<readonly Client[]>([]);
  targets = $state.raw<readonly Target[]>([]);
  readonly traffic: Recent<Traffic>;
  readonly deliveries: Recent<Delivery>;
  /** When everything was last read, in milliseconds. */
  readAt = $state<number | null>(null);
  problem = $state<string | null>(null);
  /** Whether somebody looks: only then what changes is worth reading. */
  shown = false;
  private busy = false;
  private again = false;

  constructor(private readonly calls: Calls) {
    this.traffic = new Recent((query) => calls.traffic(query));
    this.deliveries = new Recent((query) => calls.deliveries(query));
  }

  /** Something about a receiver or a delivery is other than it was. */
  async hear(): Promise<void> {
    if (this.shown) await this.read();
  }

  /** Errors are shown where the rows are; what was read before stays. */
  async read(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    do {
      this.again = false;
      await this.attempt(async () => {
        [this.clients, this.targets] = await Promise.all([
          this.calls.clients(),
          this.calls.targets(),
          this.traffic.read(),
          this.deliveries.read(),
        ]);
        this.readAt = Date.now();
      });
    } while (this.again);
    this.busy = false;
  }

  /** Asks for earlier rows of one of the two lists. */
  async more(list: { more: () => Promise<void> }): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    await this.attempt(() => list.more());
    this.busy = false;
  }

  private async attempt(read: () => Promise<void>): Promise<void> {
    try {
      await read();
      this.problem = null;
    } catch (error) {
      this.problem = messageOf(error);
    }
  }
}
