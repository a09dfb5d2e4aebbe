// What attackers did to the books with retries, each as a test named after it.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { JobState } from "../../../src/contract/states.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import type { UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const payer = "user:ada";
const upstreamId = "job-1";
const minuteMs = 60_000;
const meter = () => meterOf(payer);
const at = (now: number) =>
  runInDurableObject(stubOf(payer), (object) => {
    object.clock = () => now;
  });
const upstreamSays = (answer: UpstreamAnswer) =>
  runInDurableObject(stubOf(payer), (object) => {
    object.ask = async () => answer;
  });
const claims = { plan: "unlimited", planFrom: "token" as const, plans: "{}", token: undefined };
const totals = async () => (await meter().usage(claims)).totals;
const seen = ({ admission }: AdmitRequest, now: number, status: JobState, costMicroUsd: number | null = null) =>
  meter().settle(ending(admission, { upstreamId, status, costMicroUsd, askedAt: now, seenAt: now, completedAt: now }));

async function admitted(change: Partial<AdmitRequest> = {}): Promise<AdmitRequest> {
  const job = request(change);
  expect(await meter().admit(job)).toMatchObject({ admitted: true });
  return job;
}

async function accepted(change: Partial<AdmitRequest> = {}): Promise<AdmitRequest> {
  const job = await admitted(change);
  await meter().bind([{ admission: job.admission, upstreamId }]);
  return job;
}

const again = (first: AdmitRequest) =>
  ({ operation: "retry", retryOf: { admission: first.admission, upstreamId } }) as const;

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  await at(noon);
});
afterEach(async () => {
  expect(await meter().audit()).toEqual([]);
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("a text that was handed out, retried until the retry fails", () => {
  const text = { model: "granite-4-0-h-small", kind: "text", inputBytes: 40_000, reserveMicroUsd: 1_000_000 } as const;
  const handed = { upstreamId, pieces: 3, textBytes: 40_000, whole: false };

  it.each(["CANCELLED", "TIMED_OUT"] as const)("is paid as its run ended: %s", async (end) => {
    const first = await accepted(text);
    await meter().handOut(first.admission, handed);
    await seen(first, noon + 1, end);
    const { assumed } = await totals();
    expect(assumed).toBeGreaterThan(0);
    for (const minutes of [1, 2]) {
      await at(noon + minutes * minuteMs);
      await accepted({ ...text, ...again(first) });
      await seen(first, noon + minutes * minuteMs + 1, "FAILED");
      expect(await totals()).toEqual({ known: 0, assumed, reserved: 0 });
    }
  });

  it("costs nothing where its own run failed", async () => {
    const first = await accepted(text);
    await meter().handOut(first.admission, handed);
    await seen(first, noon + 1, "FAILED");
    await at(noon + minuteMs);
    await accepted({ ...text, ...again(first) });
    await seen(first, noon + minuteMs + 1, "FAILED");
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });
});

describe("a retry whose answer broke off, of a service that is then away", () => {
  const inDoubt = async (change: Partial<AdmitRequest> = {}) => {
    const first = await accepted(change);
    await seen(first, noon + 1, "FAILED");
    await at(noon + 10);
    const retry = await admitted({ ...again(first), ...change });
    await meter().doubt(retry.admission);
    await upstreamSays("unreachable");
    await at(noon + minuteMs + 10);
    await runDurableObjectAlarm(stubOf(payer));
    return { first, retry };
  };

  it("is assumed to cost nothing, as any other job in doubt", async () => {
    await inDoubt();
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it("is charged what it became, though its owner asks by the first id only", async () => {
    const { first, retry } = await inDoubt();
    await at(noon + 2 * minuteMs);
    await seen(first, noon + 2 * minuteMs, "COMPLETED", 7000);
    expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
    expect(await meter().job(retry.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 7000 });
  });

  it("fault of torture: ends what was assumed before it, where its own failure is seen by the first id", async () => {
    const first = await accepted();
    await seen(first, noon + 1, "COMPLETED", 7000);
    await at(noon + 10);
    await accepted(again(first));
    await seen(first, noon + 11, "TIMED_OUT");
    expect(await totals()).toEqual({ known: 0, assumed: 7000, reserved: 0 });
    await at(noon + 20);
    const doubted = await admitted(again(first));
    await meter().doubt(doubted.admission);
    await seen(first, noon + 21, "FAILED");
    expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
    expect(await meter().job(doubted.admission)).toMatchObject({ status: "FAILED", costMicroUsd: 7000 });
  });

  it("is no news where only the first run's failure is seen again", async () => {
    const { first } = await inDoubt();
    await seen(first, noon + 2 * minuteMs, "FAILED");
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });
});

describe("a retry that a poll sees run, and that the service then refuses", () => {
  it.each(["COMPLETED", "TIMED_OUT", "CANCELLED"] as const)("does not undo what its job cost: %s", async (end) => {
    const first = await accepted();
    await seen(first, noon + 1, end, 7000);
    await at(noon + 10);
    const retry = await admitted(again(first));
    await seen(first, noon + 20, "IN_PROGRESS");
    await meter().release(retry.admission);
    await seen(first, noon + 30, end, 7000);
    expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
  });

  it("is given back where nobody saw it run", async () => {
    const first = await accepted();
    await seen(first, noon + 1, "TIMED_OUT", 7000);
    await at(noon + 10);
    const retry = await admitted(again(first));
    await meter().release(retry.admission);
    expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
  });
});

it("a retry of a job that had timed out, in doubt and assumed to be lost, is charged what it became", async () => {
  const first = await accepted();
  await seen(first, noon + 1, "TIMED_OUT", 0);
  await at(noon + 10);
  const retry = await admitted(again(first));
  await meter().doubt(retry.admission);
  await upstreamSays("unreachable");
  await at(noon + minuteMs + 10);
  await runDurableObjectAlarm(stubOf(payer));
  await at(noon + 2 * minuteMs);
  await seen(first, noon + 2 * minuteMs, "COMPLETED", 9000);
  expect(await totals()).toEqual({ known: 9000, assumed: 0, reserved: 0 });
});

it("fault of torture: a retry that an earlier run's failure ended is charged what it became, once", async () => {
  const first = await accepted();
  await seen(first, noon + 1, "FAILED");
  await at(noon + 10);
  await accepted(again(first));
  await seen(first, noon + 11, "FAILED");
  await seen(first, noon + 20, "COMPLETED");
  expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
  for (const now of [noon + 21, noon + 22]) await seen(first, now, "COMPLETED", 7202);
  expect(await totals()).toEqual({ known: 7202, assumed: 0, reserved: 0 });
});

it("fault: a retry that completed at no stated cost is not undone by the failure before it, by a clock that was set back", async () => {
  const first = await accepted();
  await seen(first, noon + 1, "FAILED");
  await at(noon + 10);
  await accepted(again(first));
  await seen(first, noon + 20, "COMPLETED");
  await at(noon + 2);
  await seen(first, noon + 2, "FAILED");
  expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
});

it.each([
  ["FAILED", null, { known: 0, assumed: 20_000 }],
  ["TIMED_OUT", 500, { known: 500, assumed: 0 }],
] as const)(
  "attack: two retries of which nothing more is heard: what %s at %s is charged once",
  async (end, cost, sums) => {
    const first = await accepted({ reserveMicroUsd: 20_000 });
    await seen(first, noon + 1, end, cost);
    await upstreamSays("unreachable");
    for (const minutes of [1, 2]) {
      await at(noon + minutes * minuteMs);
      await admitted(again(first));
    }
    await at(noon + 8 * 24 * 60 * minuteMs);
    expect(await totals()).toEqual({ ...sums, reserved: 0 });
  },
);

it("attack: the end of a retry in doubt, told twice and without its id, is charged once", async () => {
  const first = await admitted({ reserveMicroUsd: 0 });
  await admitted({ ...again(first), reserveMicroUsd: 0 });
  await upstreamSays("unreachable");
  for (const minutes of [61, 63, 65]) {
    await at(noon + minutes * minuteMs);
    await runDurableObjectAlarm(stubOf(payer));
  }
  for (let time = 0; time < 2; time++) {
    const end = { upstreamId: null, status: "COMPLETED", costMicroUsd: 7000 } as const;
    await meter().settle(ending(first.admission, { ...end, askedAt: noon + 65 * minuteMs }));
  }
  expect(await totals()).toEqual({ known: 7000, assumed: 0, reserved: 0 });
});

describe("fault: a retry in doubt takes the place of one that was accepted after it", () => {
  async function doubtedAndRetried() {
    const first = await accepted();
    await seen(first, noon + 1, "FAILED");
    const doubted = await admitted(again(first));
    await meter().doubt(doubted.admission);
    const last = await accepted(again(first));
    return { first, doubted, last };
  }
  const ends = async (...jobs: readonly AdmitRequest[]) =>
    Promise.all(jobs.map(async ({ admission }) => (await meter().job(admission))?.costMicroUsd));

  it("by what is heard of their job", async () => {
    const { first, doubted, last } = await doubtedAndRetried();
    await seen(doubted, noon + 2, "IN_PROGRESS");
    expect(await ends(last)).toEqual([null]);
    await seen(first, noon + 3, "COMPLETED", 2534);
    expect(await ends(last)).toEqual([2534]);
    await at(noon + 2 * minuteMs);
    expect(await totals()).toMatchObject({ known: 2534, assumed: 0, reserved: 0 });
  });

  it("by a word on its acceptance that comes late", async () => {
    const { first, doubted, last } = await doubtedAndRetried();
    await meter().bind([{ admission: doubted.admission, upstreamId }]);
    await seen(first, noon + 3, "COMPLETED", 2534);
    expect(await ends(first, doubted, last)).toEqual([0, 0, 2534]);
  });

  it("by an end that is another than the last one's", async () => {
    const { first, doubted, last } = await doubtedAndRetried();
    await seen(first, noon + 3, "CANCELLED", 0);
    await seen(first, noon + 4, "COMPLETED", 2534);
    await at(noon + 2 * minuteMs);
    expect(await ends(first, last)).toEqual([0, 0]);
    expect(await ends(doubted)).toEqual([0]);
  });
});

it("fault: the end of a retry that was accepted by a clock that ran ahead is not held to be an earlier run's", async () => {
  const first = await accepted();
  await seen(first, noon + 1, "FAILED");
  await at(noon + 60 * minuteMs);
  const retry = await accepted(again(first));
  await at(noon + 2);
  await seen(first, noon + 2, "COMPLETED", 2534);
  expect(await meter().job(retry.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 2534 });
});
