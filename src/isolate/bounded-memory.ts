// What an isolate remembers of strings it has checked: bounded by their length, each until it expires.

interface Kept<T> {
  readonly value: T;
  readonly until: number;
  readonly weight: number;
}

/** Further back than a request's own moment lies behind the newest one's: the clock was set back. */
const setBackMs = 60_000;

/**
 * Two generations: what is asked for moves to the young one; when that is full it becomes the old one, and what nobody
 * asked for since is forgotten. So every step takes constant time, unlike a list ordered by use.
 */
export class BoundedMemory<T> {
  readonly #limit: number;
  #young = new Map<string, Kept<T>>();
  #old = new Map<string, Kept<T>>();
  #youngWeight = 0;
  #latest = Number.NEGATIVE_INFINITY;

  /** The limit is in characters: each key's and each value's. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, now: number): T | undefined {
    this.#notice(now);
    const young = this.#young.get(key);
    const kept = young ?? this.#old.get(key);
    if (!kept || kept.until <= now) return undefined;
    if (!young) this.#keep(key, kept);
    return kept.value;
  }

  /** A value that was read from its key weighs what that does. */
  set(key: string, value: T, until: number, valueCharacters = key.length): void {
    this.#keep(key, { value, until, weight: key.length + valueCharacters + entryWeight });
  }

  forget(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** What was remembered until a moment of the old clock would be remembered for too long. */
  #notice(now: number): void {
    if (now < this.#latest - setBackMs) {
      this.#young.clear();
      this.#old.clear();
      this.#youngWeight = 0;
      this.#latest = now;
    }
    this.#latest = Math.max(this.#latest, now);
  }

  #keep(key: string, kept: Kept<T>): void {
    this.#youngWeight += kept.weight;
    if (this.#youngWeight > this.#limit / 2) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngWeight = kept.weight;
    }
    this.#young.set(key, kept);
  }
}

/** What an entry weighs beside its key and its value, roughly. */
const entryWeight = 256;
