// Lives in which a meter once failed, as short as they could be made: each is lived again in every run.
import type { Command } from "./ledger-model.ts";

type Admit = Extract<Command, { do: "admit" }>;

const admit = (own: Partial<Admit>): Command => ({
  ...{ do: "admit", kind: 0, reserve: 0, times: 1, ttl: 10_000, how: "run", key: 0, fingerprint: 0 },
  ...{ narrowed: false, hasNotice: false, hasCeiling: false, again: false },
  ...own,
});
const retry = (job: number, accepted = false): Command => ({ do: "retry", job, accepted });
const pass = (ms: number, alarm = false): Command => ({ do: "pass", ms, alarm });
const heardOf = (job: number): Command => {
  return { do: "settle", job, status: "IN_QUEUE", cost: null, withId: false, agoMs: 0, times: 1 };
};

export const foundLives: [Command[]][] = [
  // The retry of a retry, both in doubt, was assumed beside the first run.
  [[admit({ reserve: 1 }), admit({}), retry(0), retry(2), pass(1), admit({}), heardOf(0)]],
  // A clock set back to a day before those that the stored counters tell apart.
  [[admit({}), pass(1, true), pass(-950_400_000), pass(1), admit({ reserve: 1 }), { do: "evict" }]],
  // A request's minute that was looked at while the clock was set back.
  [[admit({ ttl: 3_600_000 }), pass(-5000), pass(31_000), { do: "evict" }]],
];
