// Chance that can be had again: each request's fate follows from the seed and its number, whatever comes first.

export interface Fate {
  readonly user: string;
  readonly operation: "run" | "runsync";
  readonly fault: Fault;
  readonly noticeFault: boolean;
  readonly runsMs: number;
  readonly ends: "COMPLETED" | "FAILED";
  readonly costMicroUsd: number;
  /** When the client leaves; undefined where it stays. */
  readonly leavesAfterMs: number | undefined;
  readonly cancels: boolean;
  readonly idempotent: boolean;
}

/** What the upstream does to the answer of a submission. The first ones do it before it takes the job. */
export const faultsBefore = ["refuses", "busy", "resets-early"] as const;
export const faultsAfter = [
  "resets-late",
  "half-json",
  "html",
  "fails",
  "cuts-short",
  "says-the-key",
  "drips",
] as const;
export type Fault = "none" | (typeof faultsBefore)[number] | (typeof faultsAfter)[number];
const faults: readonly Fault[] = [...faultsBefore, ...faultsAfter];

export const users = ["ada", "bob", "cleo", "dan", "eve", "fay"];

export function fateOf(seed: number, n: number): Fate {
  const next = chance(seed, n);
  const pick = <T>(from: readonly T[]) => from[Math.floor(next() * from.length)] as T;
  return {
    user: pick(users),
    operation: next() < 0.7 ? "run" : "runsync",
    fault: next() < 0.3 ? pick(faults) : "none",
    noticeFault: next() < 0.4,
    runsMs: Math.floor(next() * 1500),
    ends: next() < 0.85 ? "COMPLETED" : "FAILED",
    costMicroUsd: 1 + Math.floor(next() * 9000),
    leavesAfterMs: next() < 0.2 ? Math.floor(next() * 150) : undefined,
    cancels: next() < 0.1,
    idempotent: next() < 0.3,
  };
}

/** Mulberry32, begun anew for each number. */
export function chance(seed: number, n: number): () => number {
  let state = (seed ^ Math.imul(n + 1, 0x9e3779b1)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
