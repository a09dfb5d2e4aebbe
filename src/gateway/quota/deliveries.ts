// Client webhooks on their way, beside the alarm: a receiver that hangs holds up those of its own host, and nothing else.
import { framesOf, nameOfFault } from "../../errors.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Claimed, Notice } from "./outbox.ts";

/** Under way at once. A body that is larger than all that there is room for goes alone. */
const places = { all: 6, host: 2, bytes: 8 * 1024 * 1024 };

interface Delivering {
  readonly stores: MeterStores;
  readonly clock: () => number;
  /** Tries once; whether it was received. Throws where no try was made. */
  readonly deliver: (notice: Notice) => Promise<boolean>;
  /** A place is free again. */
  readonly ended: () => void;
}

export class Deliveries {
  readonly #delivering: Delivering;
  #count = 0;
  #bytes = 0;
  /** What is due next is too large to go beside those under way. */
  #isFull = false;
  readonly #ofHosts = new Map<string, number>();

  constructor(delivering: Delivering) {
    this.#delivering = delivering;
  }

  /** What is due and has a place: it is to be begun. Within a transaction, which may fail: no place is taken yet. */
  claim(now: number): Claimed[] {
    const claimed: Claimed[] = [];
    const ofHosts = new Map(this.#ofHosts);
    let bytes = this.#bytes;
    while (this.#count + claimed.length < places.all) {
      const isAlone = this.#count + claimed.length === 0;
      const room = isAlone ? Number.POSITIVE_INFINITY : places.bytes - bytes;
      const notice = this.#delivering.stores.outbox.claim(now, fullOf(ofHosts), room);
      this.#isFull = notice === "too large";
      if (!notice || notice === "too large") break;
      ofHosts.set(hostOf(notice), (ofHosts.get(hostOf(notice)) ?? 0) + 1);
      bytes += notice.bytes;
      claimed.push(notice);
    }
    return claimed;
  }

  /** The alarm does not wait for it. */
  async begin(notice: Claimed): Promise<void> {
    this.#take(notice, 1);
    try {
      await this.#deliver(notice);
    } catch (error) {
      // What cannot be written is like a try that the object did not outlive.
      logFault(notice, error);
    } finally {
      this.#take(notice, -1);
      this.#delivering.ended();
    }
  }

  async #deliver(notice: Claimed): Promise<void> {
    const { stores, clock, deliver } = this.#delivering;
    const received = await deliver(notice).catch((error: unknown) => {
      logFault(notice, error);
      return "not tried" as const;
    });
    stores.transaction(() => {
      if (received === "not tried") stores.outbox.giveBack(notice, clock());
      else stores.outbox.settle(notice, received, clock());
    });
  }

  /** Undefined where nothing that is owed has a place before another delivery ends. */
  nextDue(): number | undefined {
    if (this.#isFull || this.#count >= places.all) return undefined;
    return this.#delivering.stores.outbox.nextDue(fullOf(this.#ofHosts));
  }

  #take(notice: Claimed, count: 1 | -1): void {
    const host = hostOf(notice);
    this.#count += count;
    this.#bytes += count * notice.bytes;
    if (count < 0) this.#isFull = false;
    const ofHost = (this.#ofHosts.get(host) ?? 0) + count;
    if (ofHost > 0) this.#ofHosts.set(host, ofHost);
    else this.#ofHosts.delete(host);
  }
}

function logFault({ admission }: Notice, error: unknown): void {
  console.error(JSON.stringify({ webhook: admission, error: nameOfFault(error), stack: framesOf(error) }));
}

/** Those that have as many as a host may. */
function fullOf(ofHosts: ReadonlyMap<string, number>): string[] {
  return [...ofHosts].flatMap(([host, count]) => (count >= places.host ? [host] : []));
}

/** What the URLs of one receiver begin with. */
function hostOf({ url }: Notice): string {
  return `${new URL(url).origin}/`;
}
