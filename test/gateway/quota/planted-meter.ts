// A meter made by hand over an object's storage: with the tests' clock, upstream and budget, and as often as they like.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { LeaseAnswer } from "../../../src/gateway/quota/budget.ts";
import type { AskUpstream } from "../../../src/gateway/quota/upstream-poll.ts";
import { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { stubOf } from "./admissions.ts";

export interface World {
  now: number;
  ask: AskUpstream;
  /** Undefined where the budget cannot be reached. */
  lease: () => LeaseAnswer | undefined | Promise<LeaseAnswer>;
  kept: Map<string, string>;
  /** What KV makes of a write. */
  keep: "takes" | "refuses" | "hangs";
  /** Awaited by a write before it is taken. */
  keepAfter: Promise<void> | undefined;
  /** When it was asked to take one. */
  putAt: number[];
}

export function newWorld(now: number): World {
  return {
    now,
    ask: async () => "unreachable",
    lease: () => ({ granted: true, allowanceMicroUsd: null, leaseMs: 60_000 }),
    kept: new Map(),
    keep: "takes",
    keepAfter: undefined,
    putAt: [],
  };
}

/** A second one over the same storage is what an eviction leaves. */
export function wake(state: DurableObjectState, world: World): UserMeter {
  const budget = {
    lease: async () => {
      const answer = await world.lease();
      if (!answer) throw new Error("unreachable");
      return answer;
    },
    report: async () => {
      if (!(await world.lease())) throw new Error("unreachable");
    },
  };
  const images = {
    put: async (key: string, body: string | ReadableStream) => {
      world.putAt.push(world.now);
      if (world.keep === "refuses") throw new Error("KV PUT failed: 429 Too Many Requests");
      if (world.keep === "hangs") return new Promise(() => {});
      await world.keepAfter;
      world.kept.set(key, typeof body === "string" ? body : await new Response(body).text());
    },
  };
  const planted = { ...env, BUDGET: { getByName: () => budget }, IMAGES: images };
  const meter = new UserMeter(state, planted as unknown as Env);
  meter.clock = () => world.now;
  meter.ask = (job) => world.ask(job);
  return meter;
}

/** With one over ada's storage. Its alarm does not ring after the test. */
export function withMeter(
  world: World,
  act: (meter: UserMeter, state: DurableObjectState) => Promise<void> | void,
): Promise<void> {
  return runInDurableObject(stubOf("user:ada"), async (_object, state) => {
    await act(wake(state, world), state);
    await state.storage.deleteAlarm();
  });
}

/** Each write of this kind, such as `INSERT ON state`, fails until the trigger `broken` is dropped. */
export function refuseWrites({ storage: { sql } }: DurableObjectState, write: string): void {
  sql.exec(`CREATE TRIGGER broken BEFORE ${write} BEGIN SELECT RAISE(ABORT, 'disk'); END`);
}
