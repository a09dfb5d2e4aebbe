// A served gateway whose timers run faster, for tests of its time-outs and heartbeats. `npm run test:full` waits as long as users do.
import { inject } from "vitest";

/** How many times faster. */
export function hurry(times: number): { readonly times: number; readonly door: string | undefined } {
  return inject("isFull") ? { times: 1, door: undefined } : { times, door: hurriedDoor(times) };
}

/** Stands before the bundle, in the same isolate. */
function hurriedDoor(times: number): string {
  return `
import product from "./index.js";
export * from "./index.js";

const { setTimeout, setInterval } = globalThis;
globalThis.setTimeout = (act, ms, ...given) => setTimeout(act, ms / ${times}, ...given);
globalThis.setInterval = (act, ms, ...given) => setInterval(act, ms / ${times}, ...given);
const timeout = AbortSignal.timeout;
AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / ${times});
const { wait } = scheduler;
scheduler.wait = (ms, options) => wait.call(scheduler, ms / ${times}, options);

export default product;
`;
}
