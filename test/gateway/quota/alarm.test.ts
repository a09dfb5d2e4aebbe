// What a meter does by itself: asks about jobs that nobody follows, settles what expires, delivers webhooks.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/contract/limits.ts";
import { type OpenRow, readOpen } from "../../../src/gateway/quota/job-rows.ts";
import { resultKey } from "../../../src/gateway/quota/kept-result.ts";
import type { AskUpstream } from "../../../src/gateway/quota/upstream-poll.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const asyncJob = { ttlMs: dayMs, retentionMs: 30 * minuteMs };
const syncJob = { ttlMs: dayMs, retentionMs: minuteMs };

const stub = () => stubOf("user:ada");
const meter = () => meterOf("user:ada");
const at = (now: number) =>
  runInDurableObject(stub(), (object) => {
    object.clock = () => now;
  });
const ring = () => runDurableObjectAlarm(stub());
const dueAt = () => runInDurableObject(stub(), (_object, state) => state.storage.getAlarm());
const totals = async () =>
  (await meter().usage({ plan: "unlimited", planFrom: "token", plans: "{}", token: undefined })).totals;

async function answering(ask: AskUpstream): Promise<ReturnType<typeof vi.fn<AskUpstream>>> {
  const asked = vi.fn(ask);
  await runInDurableObject(stub(), (object) => {
    object.ask = asked;
  });
  return asked;
}

async function bound(change: Parameters<typeof request>[0] = {}): Promise<string> {
  const job = request({ ...asyncJob, ...change });
  await meter().admit(job);
  await meter().bind([{ admission: job.admission, upstreamId: `ref-${job.admission}` }]);
  return job.admission;
}

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
  await at(noon);
  await answering(async () => "unreachable");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("a job that nobody follows", () => {
  it("is asked about within the retention of its result, and its result is kept", async () => {
    const admission = await bound();
    const asked = await answering(async () => ({
      status: "COMPLETED",
      costMicroUsd: 9000,
      completedAt: noon + 5000,
      body: '{"status":"COMPLETED"}',
    }));
    await at(noon + 10 * minuteMs);
    await ring();
    const upstreamId = `ref-${admission}`;
    expect(asked.mock.calls).toEqual([
      [
        { model: "flux", upstreamId, owner: "user:ada", admission, first: admission, isUnproven: false },
        expect.anything(),
      ],
    ]);
    expect(await totals()).toEqual({ known: 9000, assumed: 0, reserved: 0 });
    expect(await env.IMAGES.get(resultKey(admission))).toBe('{"status":"COMPLETED"}');
    expect(await meter().job(admission)).toMatchObject({ status: "COMPLETED", endedAt: noon + 5000 });
  });

  it.each([
    ["a sync job", syncJob, 22_000, 30_000],
    ["an async job", asyncJob, 7 * minuteMs, 10 * minuteMs],
  ])("is asked about in time, not all at one moment: %s", async (_name, timing, earliest, latest) => {
    await answering(async () => ({ status: "IN_PROGRESS", costMicroUsd: null, completedAt: noon }));
    for (let count = 0; count < 12; count++) await bound(timing);
    const due = await runInDurableObject(stub(), (_object, state) =>
      state.storage.sql.exec<OpenRow>("SELECT * FROM jobs").toArray().map(readOpen),
    );
    for (const { dueAt } of due) {
      expect(dueAt).toBeGreaterThanOrEqual(noon + earliest);
      expect(dueAt).toBeLessThanOrEqual(noon + latest);
    }
    expect(new Set(due.map(({ dueAt }) => dueAt)).size).toBeGreaterThan(6);
  });

  it("is not asked about before it is bound, and in time once it is", async () => {
    const job = request(syncJob);
    await meter().admit(job);
    const asked = await answering(async () => ({ status: "IN_PROGRESS", costMicroUsd: null, completedAt: noon }));
    await at(noon + 30_000);
    await ring();
    expect(asked).not.toHaveBeenCalled();
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
    await at(noon + minuteMs);
    await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
    await at(noon + minuteMs + 30_000);
    await ring();
    expect(asked).toHaveBeenCalledOnce();
  });

  it("is one of six at most that are asked about at once; the others follow at once", async () => {
    for (let count = 0; count < 20; count++) await bound();
    let underWay = 0;
    let most = 0;
    const asked = await answering(async () => {
      most = Math.max(most, ++underWay);
      await Promise.resolve();
      underWay -= 1;
      return { status: "COMPLETED", costMicroUsd: 1, completedAt: noon };
    });
    await at(noon + 11 * minuteMs);
    for (let time = 0; time < 4; time++) await ring();
    expect(asked).toHaveBeenCalledTimes(20);
    expect(most).toBe(6);
    expect(await totals()).toMatchObject({ known: 20, reserved: 0 });
  });

  it("stays reserved while the upstream cannot be reached, and is asked about again", async () => {
    await bound();
    const asked = await answering(() => Promise.reject(new Error("refused")));
    for (let time = 1; time <= 3; time++) {
      await at(noon + time * 10 * minuteMs);
      await ring();
    }
    expect(asked.mock.calls.length).toBeGreaterThanOrEqual(3);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
    expect(await dueAt()).toBeGreaterThan(noon + 30 * minuteMs);
  });

  it.each([
    ["still waited then", "IN_QUEUE", 60, 0],
    ["ran then", "IN_PROGRESS", 60, 20_000],
    ["waited long before, and was asked about at its end in vain", "IN_QUEUE", 10, 20_000],
  ] as const)("that its ttl deleted is settled by whether it %s", async (_name, seen, seenMinutes, charged) => {
    const admission = await bound({ ttlMs: 60 * minuteMs });
    await answering(async () => ({ status: seen, costMicroUsd: null, completedAt: noon }));
    await at(noon + seenMinutes * minuteMs);
    await ring();
    await answering(async () => "unknown");
    await at(noon + 61 * minuteMs);
    await ring();
    expect(await totals()).toEqual({ known: 0, assumed: charged, reserved: 0 });
    await meter().settle(ending(admission));
    expect(await totals()).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
  });

  it("that waited whenever it was asked about, and was deleted so, costs nothing", async () => {
    await bound({ ttlMs: 60 * minuteMs });
    await answering(async () => ({ status: "IN_QUEUE", costMicroUsd: null, completedAt: noon }));
    for (const minutes of [10, 20, 60]) {
      await at(noon + minutes * minuteMs);
      await ring();
    }
    await answering(async () => "unknown");
    await at(noon + 61 * minuteMs);
    await ring();
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it.each(["IN_QUEUE", "IN_PROGRESS"] as const)(
    "that its owner prolonged at the model service, and is %s there, keeps its place and its money",
    async (status) => {
      const admission = await bound({ ttlMs: 10_000 });
      await answering(async () => ({ status, costMicroUsd: null, completedAt: noon }));
      for (let minutes = 1; minutes <= 60; minutes++) {
        await at(noon + minutes * minuteMs);
        await ring();
        expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
      }
      const over = { status: "COMPLETED", costMicroUsd: 9_000, completedAt: noon + 65 * minuteMs } as const;
      const asked = await answering(async () => over);
      await at(noon + 71 * minuteMs);
      await ring();
      expect(asked).toHaveBeenCalledOnce();
      expect(await totals()).toEqual({ known: 9_000, assumed: 0, reserved: 0 });
      expect(await meter().lastWord([admission])).toMatchObject({ status: "COMPLETED" });
    },
  );

  it("that only a notice named frees its place with its ttl, whatever that id's job does", async () => {
    const job = request({ ...asyncJob, ttlMs: 10_000 });
    await meter().admit(job);
    await meter().doubt(job.admission);
    await meter().lookAgain({ admission: job.admission, upstreamId: "another's" });
    await answering(async () => ({ status: "IN_PROGRESS", costMicroUsd: null, completedAt: noon }));
    for (let minutes = 0; minutes <= 10; minutes += 0.25) {
      await at(noon + minutes * minuteMs);
      await ring();
    }
    expect((await totals()).reserved).toBe(0);
  });

  it("that goes on for longer than any job may is not believed", async () => {
    await bound({ ttlMs: 10_000 });
    await answering(async () => ({ status: "IN_PROGRESS", costMicroUsd: null, completedAt: noon }));
    await at(noon + 2 * minuteMs);
    await ring();
    expect(await totals()).toMatchObject({ reserved: 20_000 });
    await at(noon + 7 * dayMs + 2 * minuteMs);
    await ring();
    expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
  });

  it("is asked about however often somebody says to look again", async () => {
    const admission = await bound();
    const asked = await answering(async () => "unknown");
    for (let second = 0; second < 10; second++) {
      await at(noon + second * 1000);
      await meter().lookAgain({ admission, upstreamId: `ref-${admission}` });
      await ring();
    }
    expect(asked).toHaveBeenCalledOnce();
  });

  it("is asked about a last time shortly before its ttl", async () => {
    await bound({ ttlMs: 12 * minuteMs });
    const asked = await answering(async () => ({ status: "IN_QUEUE", costMicroUsd: null, completedAt: noon }));
    await at(noon + 10 * minuteMs);
    await ring();
    await at(noon + 12 * minuteMs - 15_000);
    await ring();
    expect(asked).toHaveBeenCalledTimes(2);
  });
});

it("large answers that come at once are held one after the other", async () => {
  for (let n = 0; n < 6; n++) await bound();
  let held = 0;
  let most = 0;
  await answering(async (_job, large) => {
    await large?.turn();
    held += 1;
    most = Math.max(most, held);
    await Promise.resolve().then(() => Promise.resolve());
    held -= 1;
    return "unreachable";
  });
  await at(noon + 12 * minuteMs);
  await ring();
  expect(most).toBe(1);
});

describe("a reservation that nobody settles", () => {
  it("settles at itself when it expires, marked assumed", async () => {
    await bound();
    await answering(async () => "unreachable");
    await at(noon + dayMs + minuteMs - 1);
    await ring();
    expect(await totals()).toMatchObject({ reserved: 20_000 });
    await at(noon + dayMs + minuteMs);
    await ring();
    expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
  });

  it("frees its place within ten minutes where it was lost before it was bound, and keeps its key", async () => {
    const job = request({ idempotency: { key: "k", fingerprint: "f" } });
    await meter().admit(job);
    await at(noon + 10 * minuteMs);
    await ring();
    expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
    const again = await meter().admit({ ...job, admission: request().admission });
    expect(again).toEqual({ admitted: false, replay: { admission: job.admission, upstreamId: null } });
  });
});

it("a balanced call keeps its place for as long as it may last", async () => {
  const jobs = async () => {
    const { limits } = await meter().usage({ plan: "anonymous", planFrom: "token", plans: "{}", token: undefined });
    return limits.find(({ name }) => name === "jobs")?.used;
  };
  const limitMs = limits.balanced.strictMs + limits.balanced.requestMs;
  await meter().admit(
    request({ operation: "lb", kind: undefined, model: "mine", ttlMs: limitMs, retentionMs: limitMs }),
  );
  await at(noon + limitMs - 1);
  await ring();
  expect(await jobs()).toBe(1);
  await at(noon + limitMs);
  await ring();
  expect(await jobs()).toBe(0);
});

describe("the alarm", () => {
  it("comes back where a handler fails, and does not throw", async () => {
    await bound();
    await runInDurableObject(stub(), (object) => {
      object.clock = () => {
        throw new Error("broken");
      };
    });
    const before = Date.now();
    expect(await ring()).toBe(true);
    expect(await dueAt()).toBeGreaterThanOrEqual(before);
  });

  it("is armed anew from storage when the object wakes", async () => {
    await bound();
    const due = await dueAt();
    expect(due).toBeGreaterThan(noon);
    expect(due).toBeLessThanOrEqual(noon + minuteMs);
  });
});
