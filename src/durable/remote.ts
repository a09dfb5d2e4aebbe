// A Durable Object as its callers see it: the same methods, each a promise.
import { inTime, TookTooLong } from "../isolate/in-time.ts";

/**
 * How long a call of an object may take. `needed`: the request fails without it. `comfort`: the request goes on without
 * it. `asked`: for an object that calls another one, and must answer before its own caller gives up.
 */
export const answersWithinMs = { needed: 5_000, asked: 4_000, comfort: 2_000 };

/** The runtime's own stub type splits a union of results into a union of promises, which no caller can await. */
export type Remote<T> = {
  [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: T[K] extends (
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

/** `withinMs` is left out only for calls that are held on purpose. */
export function remote<T extends Rpc.DurableObjectBranded>(
  namespace: DurableObjectNamespace<T>,
  name: string,
  withinMs?: number,
): Remote<T> {
  const stub = namespace.getByName(name) as unknown as Remote<T>;
  return withinMs === undefined ? stub : timed(stub, withinMs);
}

/** Each call of it rejects with `TookTooLong` where it has no answer by then. */
export function timed<T extends object>(stub: T, withinMs: number): T {
  return new Proxy(stub, {
    get: (target, method) => {
      const call = target as Record<PropertyKey, (...args: unknown[]) => Promise<unknown>>;
      return (...args: unknown[]) => inTime(withinMs, call[method]?.(...args) ?? Promise.reject(new TypeError()));
    },
  });
}

/** Between the tries of a call whose answer was lost. */
const usualPausesMs: readonly number[] = [50, 400];

/** For what may be done twice. Not where a caller has waited for long enough already, nor where a try makes it worse. */
export async function repeated<T>(ask: () => Promise<T>, pausesMs = usualPausesMs): Promise<T> {
  for (const pauseMs of pausesMs) {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof TookTooLong || isOverloaded(error)) throw error;
      await scheduler.wait(pauseMs);
    }
  }
  return ask();
}

/** The object has more calls waiting than it can answer: the runtime says so, and that another try makes it worse. */
export function isOverloaded(error: unknown): boolean {
  return error instanceof Error && "overloaded" in error && error.overloaded === true;
}
