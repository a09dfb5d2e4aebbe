// Chance that can be had again: each request's fate follows from the seed and its number, whatever comes first.

/** What clients do, and how often beside each other. */
const weights = {
  job: 4,
  retry: 7,
  streamed: 8,
  chat: 6,
  "large body": 6,
  picture: 7,
  webhook: 3,
  file: 4,
  upload: 12,
} as const;
export type Scenario = keyof typeof weights;

/** Dealt anew to each row of numbers, so that none of them stays away for long. */
const deck = Object.entries(weights).flatMap(([scenario, weight]) =>
  Array.from({ length: weight }, (_, variant) => ({ scenario: scenario as Scenario, variant })),
);

/** What becomes of a job each time that it is run. */
export interface Run {
  readonly runsMs: number;
  readonly ends: "COMPLETED" | "FAILED" | "TIMED_OUT";
  readonly costMicroUsd: number;
  /** Else nobody says what it cost. */
  readonly saysCost: boolean;
}

export interface Fate {
  readonly user: string;
  readonly scenario: Scenario;
  /** Tells turns of the same scenario apart: each comes as often as the others. */
  readonly variant: number;
  readonly fault: Fault;
  /** What becomes of its notice: it never comes, or says the key when it first does. */
  readonly notice: "comes" | "is lost" | "says the key";
  /** Its output has the upstream's key in it, whenever it is asked for. */
  readonly leaks: boolean;
  /** When the client leaves; undefined where it stays. */
  readonly leavesAfterMs: number | undefined;
  readonly idempotent: boolean;
}

/** What the upstream does to the answer of a submission. The first ones do it before it takes the job. */
const faultsBefore = ["refuses", "busy", "resets-early"] as const;
const faultsAfter = ["resets-late", "half-json", "html", "fails", "cuts-short", "says-the-key", "drips"] as const;
export type Fault = "none" | (typeof faultsBefore)[number] | (typeof faultsAfter)[number];
const faults: readonly Fault[] = [...faultsBefore, ...faultsAfter];

/** More than must fail before a model's circuit opens for all, and so many that no meter forgets much of its past. */
export const users = Array.from({ length: 20 }, (_, at) => `user-${at + 1}`);

export function fateOf(seed: number, n: number): Fate {
  const next = chance(seed, n);
  const pick = picker(next);
  const dealt = n < firstPicture ? deal(seed, n) : { scenario: "picture" as const, variant: 0 };
  const isRetry = dealt.scenario === "retry";
  // What goes wrong with a picture goes wrong for all who ask for it.
  const isSpared = isRetry || dealt.scenario === "picture";
  return {
    user: pick(users),
    ...dealt,
    fault: next() < (isSpared ? 0.1 : 0.25) ? pick(faults) : "none",
    notice: next() < 0.6 ? "comes" : pick(["is lost", "says the key"]),
    leaks: next() < 0.04,
    leavesAfterMs: next() < (isRetry ? 0.05 : 0.15) ? Math.floor(next() * 150) : undefined,
    idempotent: next() < 0.3,
  };
}

/** Pictures that several clients ask for have numbers of their own. */
export const firstPicture = 1_000_000_000;

function deal(seed: number, n: number): (typeof deck)[number] {
  const next = choices(seed, Math.floor(n / deck.length), "deck");
  const cards = deck.map((card) => ({ card, place: next() })).sort((one, other) => one.place - other.place);
  return cards[n % deck.length]?.card ?? deal(seed, 0);
}

/** Of what is run again some is cancelled each time, and would go on for long. */
export const isCancelled = ({ scenario, variant }: Fate) => scenario === "retry" && variant % 4 === 0;
const neverMs = 8_000;

export function runOf(seed: number, n: number, run: number): Run {
  const next = choices(seed, n, `run ${run}`);
  const fate = fateOf(seed, n);
  const isRetry = fate.scenario === "retry";
  return {
    runsMs: isCancelled(fate) ? neverMs : Math.floor(next() * (isRetry ? 500 : 1200)),
    ends: next() >= (isRetry ? 0.74 : 0.15) ? "COMPLETED" : next() < 0.5 ? "FAILED" : "TIMED_OUT",
    costMicroUsd: 1 + Math.floor(next() * 9000),
    saysCost: next() < 0.9,
  };
}

export function picker(next: () => number): <T>(from: readonly T[]) => T {
  return <T>(from: readonly T[]) => from[Math.floor(next() * from.length)] as T;
}

/** Further draws for the same number, each matter its own: none moves when another one draws more. */
export function choices(seed: number, n: number, matter: string): () => number {
  let mixed = 0x811c9dc5;
  for (const character of matter) mixed = Math.imul(mixed ^ character.charCodeAt(0), 0x01000193);
  return chance(seed ^ mixed, n);
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
