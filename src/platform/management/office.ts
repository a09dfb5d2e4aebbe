// What the desks of an account work with: changes that happen whole, and what is owed to others because of them.
import type { DutyKind } from "./duties.ts";

export interface Office {
  readonly account: string;
  change<T>(act: () => T): T;
  /** Inside a change: it is done in the end, whatever happens. */
  owe(kind: DutyKind, id: string): void;
  /** Now rather than in the end. */
  perform(kind: DutyKind, id: string): Promise<boolean>;
}

export type Removed = { readonly removed: true };
export const removed: Removed = { removed: true };

/** As many records are completed at a time. */
const atOnce = 20;

/** Some at a time, in order. */
export async function inTurns<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    done.push(...(await Promise.all(items.slice(from, from + atOnce).map(act))));
  }
  return done;
}
