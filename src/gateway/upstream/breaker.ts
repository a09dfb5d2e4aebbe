// Fails fast while a model of an upstream cannot be reached. One payer's failures alone never open the circuit for
// others.
import { isRecent } from "../../isolate/recent.ts";

/** The payers who were failed by a model since it last answered anybody, and when: those that failed last stand last. */
interface Circuit {
  readonly failedAt: Map<string, number>;
  /** A trial begins the time anew. */
  openedAt: number;
}

/**
 * The circuit opens after failures of this many different payers. A payer whose requests make the model fail counts
 * once.
 */
const payersToOpen = 5;
/** How long a failure counts, so that one payer's failing trials alone do not keep the circuit open. */
const countedMs = 30_000;
const openMs = 5_000;
/** Models that fail at once; beyond, what failed first is forgotten. */
const maxCircuits = 256;

/** Kept in the isolate. A circuit is one model of one upstream. */
export class Breaker {
  readonly #circuits = new Map<string, Circuit>();

  /**
   * Whether calls must fail fast. While the circuit is open, one call every `openMs` is told false: it is the trial.
   */
  isOpen(circuit: string, now: number): boolean {
    const known = this.#circuits.get(circuit);
    if (!known) return false;
    if (isRecent(known.openedAt, openMs, now)) return true;
    if (hasTripped(known, now)) known.openedAt = now;
    return false;
  }

  succeeded(circuit: string): void {
    this.#circuits.delete(circuit);
  }

  failed(circuit: string, payer: string, now: number): void {
    const known = this.#circuits.get(circuit) ?? { failedAt: new Map(), openedAt: Number.NEGATIVE_INFINITY };
    known.failedAt.delete(payer);
    known.failedAt.set(payer, now);
    if (known.failedAt.size > payersToOpen) dropFirst(known.failedAt);
    if (hasTripped(known, now)) known.openedAt = now;
    this.#circuits.delete(circuit);
    this.#circuits.set(circuit, known);
    if (this.#circuits.size > maxCircuits) dropFirst(this.#circuits);
  }
}

function hasTripped({ failedAt }: Circuit, now: number): boolean {
  return [...failedAt.values()].filter((at) => isRecent(at, countedMs, now)).length >= payersToOpen;
}

function dropFirst(map: Map<string, unknown>): void {
  for (const first of map.keys()) {
    map.delete(first);
    return;
  }
}
