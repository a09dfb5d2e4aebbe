// What goes wrong beside all else: it begins at a moment that the seed draws, lasts for a while, and comes again.
import { chance } from "./chance.ts";
import { pause } from "./pace.ts";
import type { Afflicted, Weather } from "./weather.ts";

type Span = readonly [leastMs: number, mostMs: number];

export interface Disturbance {
  /** By which it is left out. */
  readonly name: string;
  readonly afflicts: Afflicted;
  /** Between two of them. */
  readonly rests: Span;
  readonly lasts: Span;
  /** Answers with what it is counted as. */
  begin(next: () => number): Promise<string>;
  end(): Promise<void>;
}

/** Until then; what has begun ends. */
export async function disturb(
  { afflicts, rests, lasts, begin, end }: Disturbance,
  next: () => number,
  weather: Weather,
  until: number,
): Promise<void> {
  for (;;) {
    await pause(within(rests, next()));
    await weather.up;
    if (Date.now() >= until) return;
    weather.beginTrouble(await begin(next), afflicts);
    await pause(Math.min(within(lasts, next()), Math.max(0, until - Date.now())));
    await end();
    weather.endTrouble(afflicts);
  }
}

/** Draws of its own for each, whatever comes first. */
export const drawsOf = (seed: number, at: number) => chance(seed, -10 - at);

function within([least, most]: Span, draw: number): number {
  return least + draw * (most - least);
}
