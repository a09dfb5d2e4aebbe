// What is wrong with the gateway's surroundings at the moment, and what an answer may be excused by.
import { history } from "./history.ts";

/** How long after a kill an answer may still be its fault. */
const excusedMs = 5_000;
/** How long after the upstream came back its circuit may still be open. */
export const closesWithinMs = 20_000;

/** What a trouble is one of: only an answer that depends on it is excused by it. */
export type Afflicted = "the process" | "the upstream" | "stores" | "receivers" | "objects" | "the clock";

export class Weather {
  /** When it was up again; later than any moment while it is not. */
  killedAt = Number.NEGATIVE_INFINITY;
  /** Resolves once the gateway listens: a call that meets nobody is none. */
  up: Promise<void> = Promise.resolve();
  /** Until then the upstream refuses connections. */
  awayUntil = Number.NEGATIVE_INFINITY;
  /** How often an answer said that the upstream is not asked at all. */
  down = 0;
  readonly troubles = new Map<string, number>();
  readonly #under = new Map<Afflicted, number>();
  readonly #endedAt = new Map<Afflicted, number>();

  beginTrouble(what: string, afflicts: Afflicted): void {
    history.noteForAll(`trouble: ${what}`);
    this.#under.set(afflicts, (this.#under.get(afflicts) ?? 0) + 1);
    this.troubles.set(what, (this.troubles.get(what) ?? 0) + 1);
  }

  endTrouble(afflicts: Afflicted): void {
    history.noteForAll(`trouble of ${afflicts} is over`);
    this.#under.set(afflicts, (this.#under.get(afflicts) ?? 0) - 1);
    this.#endedAt.set(afflicts, Date.now());
  }

  /** Whether a kill may have met what was sent then. */
  killed(sentAt: number): boolean {
    return sentAt - this.killedAt < excusedMs || Date.now() - this.killedAt < excusedMs;
  }

  /** Whether a trouble of these may have. */
  troubled(afflicted: Afflicted, sentAt: number): boolean {
    const endedAt = this.#endedAt.get(afflicted) ?? Number.NEGATIVE_INFINITY;
    return (this.#under.get(afflicted) ?? 0) > 0 || sentAt - endedAt < excusedMs;
  }

  /** Whether a circuit may be open. */
  mayBeDown(): boolean {
    return Date.now() < this.awayUntil + closesWithinMs;
  }
}
