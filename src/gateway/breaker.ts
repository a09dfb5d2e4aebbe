// Fails fast while a model of an upstream cannot be reached. What one payer meets with closes it to nobody else.
import { isRecent } from "../wire/recent.ts";

/** The payers who were failed by a model since it last answered anybody, and when: those that failed last stand last. */
interface Circuit {
  readonly failedAt: Map<string, number>;
  /** A trial begins the time anew. */
  openedAt: number;
}

/** As many different payers must have met a failure: whoever sends what makes a model fail counts once, however often. */
const payersToOpen = 5;
/** A failure counts for so long: one payer's failing trials alone do not keep the others out. */
const countedMs = 30_000;
const openMs = 5_000;
/** Models that fail at once; beyond, what failed first is forgotten. */
const maxCircuits = 256;

/** Kept by an isolate. The circuit is a model's address: another model of the same upstream is another circuit. */
export class Breaker {
  readonly #circuits = new Map<string, Circuit>();

  /** While it is open one call in a while is let through as a trial: who is told false makes it. */
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
