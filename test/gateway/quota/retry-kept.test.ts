// The result of a retry that its owner has not seen, while answers about the runs before it come late: it is kept all the same.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { JobState } from "../../../src/contract/states.ts";
import type { UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, noon, request } from "./admissions.ts";
import { newWorld, type World, withMeter } from "./planted-meter.ts";

const secondMs = 1000;
const hourMs = 3600 * secondMs;
const upstreamId = "job-1";

const claims = { plan: "unlimited", planFrom: "token" as const, plans: "{}", token: undefined };
const webhook = "https://app.example.org/hook";

let world: World;
beforeEach(() => {
  world = newWorld(noon);
  vi.spyOn(console, "warn").mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

const bodyOf = (status: JobState) => JSON.stringify({ id: "handle", status });
const says = (status: JobState, costMicroUsd = status === "COMPLETED" ? 9000 : null): UpstreamAnswer => ({
  status,
  costMicroUsd,
  completedAt: world.now,
  ...(!status.startsWith("IN_") && { body: bodyOf(status) }),
});

async function accepted(meter: UserMeter, change: Parameters<typeof request>[0] = {}): Promise<string> {
  const job = request(change);
  await meter.admit(job);
  meter.bind([{ admission: job.admission, upstreamId }]);
  return job.admission;
}

const retryOf = (admission: string) => ({ operation: "retry", retryOf: { admission, upstreamId } }) as const;

/** As an answer that passes by tells it, or a notice. */
const told = (meter: UserMeter, admission: string, status: JobState, change: Parameters<typeof ending>[1] = {}) =>
  meter.settle(ending(admission, { upstreamId, status, askedAt: world.now, costMicroUsd: null, ...change }));

/** What webhooks tell. */
function sentBy(meter: UserMeter, isTaken: (status: JobState) => boolean | Promise<boolean> = () => true): JobState[] {
  const sent: JobState[] = [];
  meter.send = async (request) => {
    const { status } = (await request.json()) as { readonly status: JobState };
    sent.push(status);
    return new Response(null, { status: (await isTaken(status)) ? 200 : 500 });
  };
  return sent;
}

/** A retry is accepted. Later a Worker whose clock runs ahead has asked, at `askedAt`, for the failure before it. */
async function retriedWithClockAhead(meter: UserMeter, change: Parameters<typeof request>[0] = {}) {
  const first = await accepted(meter);
  const askedAt = world.now + 2 * secondMs;
  told(meter, first, "FAILED");
  world.now += secondMs;
  const retry = await accepted(meter, { ...retryOf(first), retentionMs: 60_000, ...change });
  return { first, retry, askedAt };
}

const owed = (meter: UserMeter, admission: string) => {
  const { owed } = meter.lastWord([admission]);
  return owed && new TextDecoder().decode(owed);
};
const kinds = ({ storage: { sql } }: DurableObjectState) => {
  const isMade = sql.exec("SELECT name FROM sqlite_master WHERE name = 'debts'").toArray().length > 0;
  const rows = isMade ? sql.exec<{ kind: string }>("SELECT kind FROM debts").toArray() : [];
  return rows.map(({ kind }) => kind);
};

/** The alarm rings when it is due, until that holds. */
async function ringUntil(meter: UserMeter, state: DurableObjectState, holds: () => boolean): Promise<void> {
  for (let rings = 0; !holds(); rings++) {
    expect(rings).toBeLessThan(100);
    world.now = Math.max(world.now, (await state.storage.getAlarm()) ?? Number.NaN);
    await meter.alarm();
  }
}

describe("fault of torture: the alarm has asked about a failed run, and a retry is accepted while KV takes its failure", () => {
  const caughtUp = async (meter: UserMeter, meanwhile: (first: string, retry: string) => void) => {
    const first = await accepted(meter);
    world.ask = async () => says("FAILED");
    const kept = Promise.withResolvers<void>();
    world.keepAfter = kept.promise;
    world.now += 10 * 60 * secondMs;
    const ringing = meter.alarm();
    await vi.waitFor(() => expect(world.putAt).not.toEqual([]));
    world.now += 100;
    const retry = await accepted(meter, retryOf(first));
    world.now += 100;
    meanwhile(first, retry);
    world.keepAfter = undefined;
    kept.resolve();
    await ringing;
    return { first, retry };
  };

  it("does not fail the retry", () =>
    withMeter(world, async (meter) => {
      const { retry } = await caughtUp(meter, () => {});
      expect(meter.job(retry)).toMatchObject({ status: "IN_QUEUE", endedAt: null });
    }));

  it("keeps the result of the retry that a notice told of", () =>
    withMeter(world, async (meter, state) => {
      const noticed = (first: string) => told(meter, first, "COMPLETED", { costMicroUsd: 9000, isUntold: true });
      const { first, retry } = await caughtUp(meter, noticed);
      expect(kinds(state)).toEqual(["untold"]);
      world.ask = async () => says("COMPLETED");
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
      expect(world.kept.get(`result/${retry}`)).toBe(bodyOf("COMPLETED"));
    }));

  it("owes no failure that KV does not take", () =>
    withMeter(world, async (meter, state) => {
      const refuse = () => {
        world.keep = "refuses";
      };
      const { first, retry } = await caughtUp(meter, refuse);
      expect(owed(meter, first)).toBeUndefined();
      expect(meter.job(retry)?.endedAt).toBeNull();
      world.ask = async () => says("COMPLETED");
      await ringUntil(meter, state, () => owed(meter, first) !== undefined);
      expect(owed(meter, first)).toBe(bodyOf("COMPLETED"));
    }));
});

describe("fault of torture: a retry is accepted while the alarm asks about the run before it", () => {
  it.each([
    ["by the right clock", 0],
    ["by a clock that was set back meanwhile", -hourMs],
    ["by a clock that was set ahead meanwhile", hourMs],
  ])("and is not ended by that answer: %s", (_, stepMs) =>
    withMeter(world, async (meter) => {
      const first = await accepted(meter);
      let retry = "";
      world.ask = async () => {
        world.now += stepMs + 1;
        retry = await accepted(meter, retryOf(first));
        world.now += 1 - stepMs;
        return says("TIMED_OUT");
      };
      world.now += 10 * 60 * secondMs;
      await meter.alarm();
      expect(meter.job(retry)).toMatchObject({ status: "IN_QUEUE", endedAt: null });
      expect(world.kept.size).toBe(0);
    }),
  );
});

describe("fault: a retry is accepted while the alarm asks about it, and the answer is of the run before", () => {
  it.each([
    ["right", 0, 0],
    ["set back after it was accepted", 0, -hourMs],
    ["set ahead, and back after it was accepted", hourMs, -hourMs],
    ["set back before it was accepted, and right again", -hourMs, hourMs],
  ])("that does not end it, where the clock is %s", (_, before, after) =>
    withMeter(world, async (meter, state) => {
      const first = await accepted(meter);
      told(meter, first, "FAILED");
      world.now += secondMs;
      const retry = request({ ...retryOf(first), retentionMs: 60_000 });
      await meter.admit(retry);
      const ask = vi.fn(async () => {
        world.now += before + 1;
        meter.bind([{ admission: retry.admission, upstreamId }]);
        world.now += after + 1;
        return says("FAILED");
      });
      world.ask = ask;
      await ringUntil(meter, state, () => ask.mock.calls.length > 0);
      expect(meter.job(retry.admission)).toMatchObject({ status: "IN_QUEUE", endedAt: null });
      world.ask = async () => says("COMPLETED");
      await ringUntil(meter, state, () => meter.job(retry.admission)?.endedAt !== null);
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }),
  );
});

describe("a retry that the alarm asks about before the upstream has accepted it", () => {
  it("is asked about again once it is accepted: the answer was of the run before it", () =>
    withMeter(world, async (meter, state) => {
      const first = await accepted(meter);
      told(meter, first, "TIMED_OUT");
      const retry = request(retryOf(first));
      await meter.admit(retry);
      world.ask = async () => says("TIMED_OUT");
      await ringUntil(meter, state, () => meter.job(retry.admission)?.endedAt !== null);
      meter.bind([{ admission: retry.admission, upstreamId }]);
      world.ask = async () => says("COMPLETED");
      await ringUntil(meter, state, () => meter.job(retry.admission)?.status === "COMPLETED");
      expect(meter.job(retry.admission)).toMatchObject({ costMicroUsd: 9000 });
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }));
});

describe("fault: the alarm asks about a retry that the upstream has not accepted yet, and is told of the run before it", () => {
  const askedTooSoon = async (meter: UserMeter, state: DurableObjectState, as: JobState, cost: number | null) => {
    const first = await accepted(meter);
    told(meter, first, as, { costMicroUsd: cost });
    world.now += secondMs;
    const retry = request({ ...retryOf(first), retentionMs: 60_000 });
    await meter.admit(retry);
    const ask = vi.fn(async () => says(as, cost));
    world.ask = ask;
    await ringUntil(meter, state, () => ask.mock.calls.length > 0);
    return { first, retry: retry.admission };
  };
  const ends = [
    ["FAILED", null],
    ["TIMED_OUT", 500],
  ] as const;

  it.each(ends)("it keeps its place and its reservation, before and after it is accepted: %s at %s", (as, cost) =>
    withMeter(world, async (meter, state) => {
      const { first, retry } = await askedTooSoon(meter, state, as, cost);
      expect(meter.usage(claims).totals).toMatchObject({ reserved: 20_000 });
      meter.bind([{ admission: retry, upstreamId }]);
      world.ask = async () => says("IN_PROGRESS");
      await meter.alarm();
      expect(meter.job(retry)).toMatchObject({ endedAt: null });
      expect(meter.usage(claims).totals).toMatchObject({ reserved: 20_000 });
      world.ask = async () => says("COMPLETED");
      await ringUntil(meter, state, () => meter.job(retry)?.endedAt !== null);
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
      expect(kinds(state)).toEqual([]);
    }),
  );

  it.each(ends)("that end is its own where nobody tells that it was accepted, until it expires: %s at %s", (as, cost) =>
    withMeter(world, async (meter, state) => {
      const { first, retry } = await askedTooSoon(meter, state, as, cost);
      await ringUntil(meter, state, () => meter.job(retry)?.endedAt !== null);
      expect(meter.job(retry)).toMatchObject({ status: as });
      expect(meter.usage(claims).totals).toEqual({ known: cost ?? 0, assumed: 0, reserved: 0 });
      expect([...world.kept.keys()]).toEqual([`result/${first}`]);
    }),
  );

  it("its result is kept by a poll, and the failure that KV takes late is not in its place", () =>
    withMeter(world, async (meter, state) => {
      const first = await accepted(meter);
      told(meter, first, "FAILED");
      const { admission: retry, ...rest } = request(retryOf(first));
      await meter.admit({ admission: retry, ...rest });
      world.ask = async () => says("FAILED");
      const late = Promise.withResolvers<void>();
      world.keepAfter = late.promise;
      /** The clock is set ahead: by it the retry has expired. */
      world.now += hourMs;
      const ringing = meter.alarm();
      await vi.waitFor(() => expect(world.putAt).not.toEqual([]));
      meter.bind([{ admission: retry, upstreamId }]);
      world.now += secondMs;
      expect(told(meter, first, "COMPLETED", { costMicroUsd: 9000 })).toMatchObject({ isOver: true });
      // As the relay does.
      for (const name of [first, retry]) world.kept.set(`result/${name}`, bodyOf("COMPLETED"));
      late.resolve();
      await ringing;
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED" });
      expect(world.kept.get(`result/${retry}`)).toBe(bodyOf("COMPLETED"));
      expect(kinds(state)).toEqual([]);
    }));

  it("a failure of the run before that KV refuses is not owed as the retry's once that is accepted", () =>
    withMeter(world, async (meter, state) => {
      world.keep = "refuses";
      const { first, retry } = await endedByTheRunBefore(meter, state, "FAILED", null);
      expect(kinds(state)).toEqual(["result"]);
      meter.bind([{ admission: retry, upstreamId }]);
      expect(owed(meter, first)).toBeUndefined();
      expect(kinds(state)).toEqual(["untold"]);
    }));
});

it("fault: a job's end was assumed since the alarm was late, and its true failure is told while it is retried: that is not the retry's", () =>
  withMeter(world, async (meter) => {
    const first = await accepted(meter, { ttlMs: 10 * secondMs });
    world.now += hourMs;
    expect(meter.job(first)).toMatchObject({ status: "TIMED_OUT", isAssumed: true });
    const retry = request(retryOf(first));
    await meter.admit(retry);
    world.ask = async () => says("FAILED");
    await meter.alarm();
    await vi.waitFor(() => expect(meter.job(first)).toMatchObject({ status: "FAILED", isAssumed: false }));
    meter.bind([{ admission: retry.admission, upstreamId }]);
    expect(meter.job(retry.admission)).toMatchObject({ status: "IN_QUEUE", endedAt: null });
  }));

/** The alarm asks about a retry whose acceptance nobody has told, for so long that it takes the end of the run before for its. */
async function endedByTheRunBefore(
  meter: UserMeter,
  state: DurableObjectState,
  as: JobState,
  cost: number | null,
  change: Parameters<typeof request>[0] = {},
) {
  const first = await accepted(meter, change);
  told(meter, first, as, { costMicroUsd: cost });
  world.now += secondMs;
  const { admission: retry, ...rest } = request({ ...change, ...retryOf(first), retentionMs: 60_000 });
  await meter.admit({ admission: retry, ...rest });
  world.ask = async () => says(as, cost);
  await ringUntil(meter, state, () => meter.job(retry)?.endedAt !== null);
  expect(meter.job(retry)).toMatchObject({ status: as });
  return { first, retry };
}

describe("fault: a retry was ended by the end of the run before it, and is accepted after that", () => {
  it.each([
    ["FAILED", null],
    ["TIMED_OUT", 500],
  ] as const)("its result is kept and charged by the alarm, where that run %s at a cost of %s", (as, cost) =>
    withMeter(world, async (meter, state) => {
      const { first, retry } = await endedByTheRunBefore(meter, state, as, cost);
      meter.bind([{ admission: retry, upstreamId }]);
      world.ask = async () => says("COMPLETED");
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
    }),
  );

  it.each(["FAILED", "TIMED_OUT"] as const)("it costs its reservation where its answer states no cost: %s", (as) =>
    withMeter(world, async (meter, state) => {
      const { retry } = await endedByTheRunBefore(meter, state, as, null);
      meter.bind([{ admission: retry, upstreamId }]);
      world.ask = async () => says("COMPLETED", null);
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED", costMicroUsd: 20_000, isAssumed: true });
    }),
  );

  it.each([
    ["FAILED", null, "COMPLETED"],
    ["FAILED", null, "CANCELLED"],
    ["TIMED_OUT", 500, "COMPLETED"],
    ["TIMED_OUT", 500, "CANCELLED"],
  ] as const)("its end is taken from an answer that passes by: the run before %s at %s, it is %s", (as, cost, end) =>
    withMeter(world, async (meter, state) => {
      const { first, retry } = await endedByTheRunBefore(meter, state, as, cost);
      meter.bind([{ admission: retry, upstreamId }]);
      world.now += secondMs;
      expect(told(meter, first, end, { costMicroUsd: 800 })).toMatchObject({ admission: retry, isOver: true });
      expect(meter.job(retry)).toMatchObject({ status: end, costMicroUsd: 800 });
      expect(kinds(state)).toEqual([]);
    }),
  );

  it.each([
    ["FAILED", null, "TIMED_OUT", 500],
    ["TIMED_OUT", 500, "FAILED", null],
  ] as const)("its end is the one that the alarm is told: the run before %s at %s, it %s at %s", (as, cost, end, own) =>
    withMeter(world, async (meter, state) => {
      const sent = sentBy(meter);
      const { first, retry } = await endedByTheRunBefore(meter, state, as, cost, { webhook });
      // That is the webhook of the run before.
      expect(sent.splice(0)).toEqual([as]);
      meter.bind([{ admission: retry, upstreamId }]);
      world.ask = async () => says(end, own);
      await ringUntil(meter, state, () => kinds(state).length === 0 && sent.length > 0);
      expect(meter.job(retry)).toMatchObject({ status: end, costMicroUsd: 500, isAssumed: false });
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf(end));
      expect(world.now).toBeLessThan(noon + hourMs);
      expect(sent).toEqual([end]);
      // Once it is told, the late end of the run before it changes nothing.
      world.now += hourMs;
      expect(told(meter, first, as, { costMicroUsd: cost })).toMatchObject({ isOver: false });
      expect(meter.job(retry)).toMatchObject({ status: end, costMicroUsd: 500 });
    }),
  );

  it("it is asked about in time where it runs for minutes, and the upstream keeps its result for one", () =>
    withMeter(world, async (meter, state) => {
      const { first, retry } = await endedByTheRunBefore(meter, state, "FAILED", null);
      meter.bind([{ admission: retry, upstreamId }]);
      const endsAt = world.now + 400 * secondMs;
      world.ask = async () => {
        if (world.now < endsAt) return says("IN_PROGRESS");
        return world.now < endsAt + 60 * secondMs ? says("COMPLETED") : "unknown";
      };
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }));

  it("it is asked about at once where a Worker's clock runs ahead, and told the failure before it as its own, twice", () =>
    withMeter(world, async (meter, state) => {
      const { first, retry, askedAt } = await retriedWithClockAhead(meter);
      for (let times = 0; times < 2; times++) told(meter, first, "FAILED", { askedAt });
      expect(kinds(state)).toEqual(["untold"]);
      world.ask = async () => says("COMPLETED");
      await meter.alarm();
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(world.now).toBeLessThan(noon + 60 * secondMs);
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }));

  it.each([
    ["taken", true],
    ["refused", false],
  ])(
    "its webhook tells its own end, where a Worker's clock runs ahead and so told the failure before it: that is %s",
    (_, isTaken) =>
      withMeter(world, async (meter, state) => {
        const { first, retry, askedAt } = await retriedWithClockAhead(meter, { webhook });
        const sent = sentBy(meter, (status) => isTaken || status === "COMPLETED");
        for (const wantsNotice of [true, false]) {
          // Under its name, the failure is not kept: it might hide the result.
          expect(told(meter, first, "FAILED", { askedAt })).toMatchObject({ isOver: false, wantsNotice });
          meter.notify(retry, bodyOf("FAILED"));
        }
        world.ask = async () => says("COMPLETED");
        await ringUntil(meter, state, () => kinds(state).length === 0 && sent.includes("COMPLETED"));
        expect(sent).toEqual(["FAILED", "COMPLETED"]);
      }),
  );

  it("its webhook tells its own end, which is known while the failure before it is on its way there", () =>
    withMeter(world, async (meter, state) => {
      const { first, retry, askedAt } = await retriedWithClockAhead(meter, { webhook });
      const taken = Promise.withResolvers<void>();
      const sent = sentBy(meter, async (status) => {
        if (status === "FAILED") await taken.promise;
        return true;
      });
      told(meter, first, "FAILED", { askedAt });
      meter.notify(retry, bodyOf("FAILED"));
      const ringing = meter.alarm();
      await vi.waitFor(() => expect(sent).toEqual(["FAILED"]));
      world.now += 10 * secondMs;
      expect(told(meter, first, "COMPLETED", { costMicroUsd: 9000 })).toMatchObject({ wantsNotice: true });
      meter.notify(retry, bodyOf("COMPLETED"));
      taken.resolve();
      await ringing;
      await ringUntil(meter, state, () => sent.length > 1);
      expect(sent).toEqual(["FAILED", "COMPLETED"]);
    }));

  it("its end is taken where a Worker's clock runs ahead, and so told the failure before it as its own", () =>
    withMeter(world, async (meter) => {
      const first = await accepted(meter);
      told(meter, first, "TIMED_OUT", { costMicroUsd: 0 });
      const askedAt = world.now + 2 * secondMs;
      world.now += secondMs;
      const retry = await accepted(meter, retryOf(first));
      told(meter, first, "TIMED_OUT", { askedAt, costMicroUsd: 0 });
      world.now += 10 * secondMs;
      expect(told(meter, first, "COMPLETED", { costMicroUsd: 9000 })).toMatchObject({ isOver: true });
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
    }));
});

describe("fault of torture: a notice told of a retry's end", () => {
  const untold = async (meter: UserMeter) => {
    const first = await accepted(meter);
    told(meter, first, "FAILED");
    world.now += secondMs;
    const retry = await accepted(meter, retryOf(first));
    world.now += secondMs;
    told(meter, first, "COMPLETED", { costMicroUsd: 9000, isUntold: true });
    return { first, retry };
  };

  it("and the clock catches up while the alarm asks: its answer seems to be older than the retry", () =>
    withMeter(world, async (meter, state) => {
      const { first } = await untold(meter);
      const right = world.now;
      world.now -= hourMs;
      world.ask = async () => {
        world.now = right + secondMs;
        world.ask = async () => says("COMPLETED");
        return says("COMPLETED");
      };
      await meter.alarm();
      expect(kinds(state)).toEqual(["untold"]);
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }));

  it("and the failure before it is told after that, by a clock that was set back since", () =>
    withMeter(world, async (meter, state) => {
      world.now += hourMs;
      const { first, retry } = await untold(meter);
      world.now -= hourMs;
      const late = told(meter, first, "FAILED");
      expect(late).toMatchObject({ admission: retry, isOver: false, wantsNotice: false });
      expect(meter.job(retry)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
      expect(kinds(state)).toEqual(["untold"]);
    }));

  it("and it is told by an answer from before the retry: nothing of that is kept as the retry's", () =>
    withMeter(world, async (meter, state) => {
      const { first } = await untold(meter);
      const late = told(meter, first, "FAILED", { askedAt: noon });
      expect(late).toMatchObject({ isOver: false, wantsNotice: false });
      expect(kinds(state)).toEqual(["untold"]);
    }));

  it("and its owner is told by the next answer: nothing is owed any more", () =>
    withMeter(world, async (meter, state) => {
      const { first, retry } = await untold(meter);
      expect(told(meter, first, "COMPLETED")).toMatchObject({ admission: retry, isOver: true });
      expect(kinds(state)).toEqual([]);
    }));
});

describe("a result that is owed anew while the one before it is on its way to KV", () => {
  it("stays owed until KV has that one too", () =>
    withMeter(world, async (meter, state) => {
      const first = await accepted(meter);
      world.ask = async () => says("FAILED");
      world.keep = "refuses";
      await ringUntil(meter, state, () => owed(meter, first) !== undefined);
      world.keep = "takes";
      const taken = Promise.withResolvers<void>();
      world.keepAfter = taken.promise;
      world.now += 10 * secondMs;
      const puts = world.putAt.length;
      const ringing = meter.alarm();
      await vi.waitFor(() => expect(world.putAt.length).toBeGreaterThan(puts));
      await accepted(meter, retryOf(first));
      world.ask = async () => says("COMPLETED");
      world.keep = "refuses";
      await ringUntil(meter, state, () => owed(meter, first) === bodyOf("COMPLETED"));
      world.keepAfter = undefined;
      taken.resolve();
      await ringing;
      world.keep = "takes";
      await ringUntil(meter, state, () => kinds(state).length === 0);
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }));
});

describe("attack: a retry whose answer is lost", () => {
  it("and the one question about it, too: it is asked about again, charged and kept", () =>
    withMeter(world, async (meter, state) => {
      const first = await accepted(meter);
      told(meter, first, "FAILED");
      world.now += 10 * secondMs;
      const retry = request({ ...retryOf(first), retentionMs: 60_000 });
      await meter.admit(retry);
      meter.doubt(retry.admission);
      world.ask = async () => {
        world.ask = async () => says("COMPLETED");
        return "unreachable";
      };
      await ringUntil(meter, state, () => kinds(state).length === 0 && meter.job(retry.admission)?.endedAt !== null);
      expect(meter.job(retry.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 9000 });
      expect(world.kept.get(`result/${first}`)).toBe(bodyOf("COMPLETED"));
    }));

  it.each(["before the retries", "after them"])(
    "three times, of a job that completes %s: one webhook tells of it",
    (when) =>
      withMeter(world, async (meter, state) => {
        const first = await accepted(meter, { webhook });
        const sent = sentBy(meter);
        world.ask = async () => says("COMPLETED");
        const ends = () => {
          expect(told(meter, first, "COMPLETED", { costMicroUsd: 9000 })).toMatchObject({ wantsNotice: true });
          meter.notify(first, bodyOf("COMPLETED"));
        };
        if (when === "before the retries") ends();
        const retries = [1, 2, 3].map(() => request({ ...retryOf(first), retentionMs: 60_000 }));
        for (const retry of retries) {
          await meter.admit(retry);
          world.now += 100;
          meter.doubt(retry.admission);
        }
        if (when === "after them") ends();
        await ringUntil(
          meter,
          state,
          () => kinds(state).length === 0 && retries.every(({ admission }) => meter.job(admission)?.endedAt !== null),
        );
        expect(sent).toEqual(["COMPLETED"]);
        expect(meter.usage(claims).totals).toMatchObject({ known: 9000, reserved: 0 });
      }),
  );
});
