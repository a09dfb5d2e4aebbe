// The one setting of how much is drawn and planted: a tenth in `npm test`, all of it in `npm run test:full`.
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    isFull: boolean;
  }
}

/** A tenth of the runs finds most faults within seconds; a crowd stays one, so it may not fall below what is stated. */
export function amount(inFull: number, atLeast = 1): number {
  return inject("isFull") ? inFull : Math.max(atLeast, Math.ceil(inFull / 10));
}
