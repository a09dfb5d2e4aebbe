// The one setting of how much is drawn and planted: a twentieth in `npm test`, all of it in `npm run test:full`.
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    isFull: boolean;
    /** Of what properties draw; null where each run is to draw anew. */
    seed: number | null;
  }
}

/** A twentieth of the runs finds most faults within seconds; a crowd stays one, so it may not fall below what is stated. */
export function amount(inFull: number, atLeast = 1): number {
  return inject("isFull") ? inFull : Math.max(atLeast, Math.ceil(inFull / 20));
}

/** Of like cases those that have what all of them have, where not all are to be run. */
export function casesOf<T>(all: readonly T[], enough: number): readonly T[] {
  return inject("isFull") ? all : all.slice(0, enough);
}
