// Jobs that their owner prolonged at the model service (`status?ttl=`): the meter knows only the ttl that they were
// admitted with.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import type { UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const ttlMs = 10 * secondMs;
const claims = { plan: "unlimited", planFrom: "token" as const, plans: "{}", token: undefined };
const running = { status: "IN_PROGRESS", costMicroUsd: null, completedAt: 0 } as const;
const waiting = { ...running, status: "IN_QUEUE" } as const;
const completed = { status: "COMPLETED", costMicroUsd: 15_000, completedAt: noon } as const;

const clockOf = (name: string, now: number) =>
  runInDurableObject(stubOf(name), (object) => {
    object.clock = () => now;
  });
const answering = (name: string, said: UpstreamAnswer) =>
  runInDurableObject(stubOf(name), (object) => {
    object.ask = async () => said;
  });
const ring = (name: string) => runDurableObjectAlarm(stubOf(name));
const totalsOf = async (name: string) => (await meterOf(name).usage(claims)).totals;
const audit = async (name: string) => expect(await meterOf(name).audit()).toEqual([]);

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("attack: a job is prolonged, and its meter", () => {
  const name = "user:ada";
  const at = (now: number) => clockOf(name, now);
  const another = () => meterOf(name).admit(request({ admission: newAdmission(noon), plan: "anonymous" }));

  async function prolonged(said: UpstreamAnswer, untilMs = 2 * minuteMs): Promise<string> {
    await at(noon);
    const job = request({ ttlMs, plan: "anonymous" });
    await meterOf(name).admit(job);
    await meterOf(name).bind([{ admission: job.admission, upstreamId: "job-1" }]);
    await answering(name, said);
    for (let later = ttlMs; later <= untilMs; later += 10 * secondMs) {
      await at(noon + later);
      await ring(name);
    }
    expect((await totalsOf(name)).reserved).toBe(20_000);
    return job.admission;
  }

  afterEach(() => audit(name));

  it.each([
    ["after its first answer", 20 * secondMs, 70 * secondMs],
    ["later", 2 * minuteMs, 13 * minuteMs],
  ])("asks once in vain %s: it keeps its place, and is asked about again", async (_when, untilMs, failsMs) => {
    await prolonged(running, untilMs);
    await answering(name, "unreachable");
    await at(noon + failsMs);
    await ring(name);
    expect(codeOf(await another())).toBe("TOO_MANY_JOBS");
    await answering(name, completed);
    await at(noon + failsMs + 11 * minuteMs);
    await ring(name);
    expect(await totalsOf(name)).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
  });

  it("rings two minutes late: it keeps its place", async () => {
    await prolonged(running);
    await at(noon + 14 * minuteMs);
    expect(codeOf(await another())).toBe("TOO_MANY_JOBS");
  });

  it("asks in vain for an hour: its end is assumed at its reservation, though it waited when it was last seen", async () => {
    const admission = await prolonged(waiting);
    await answering(name, "unreachable");
    for (let minutes = 3; minutes <= 60; minutes++) {
      await at(noon + minutes * minuteMs);
      await ring(name);
    }
    expect(await totalsOf(name)).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
    await meterOf(name).settle(ending(admission));
    expect(await totalsOf(name)).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
  });

  it("asks in vain, and hears then that it waited and is gone: it costs nothing", async () => {
    await prolonged(waiting);
    await answering(name, "unreachable");
    await at(noon + 13 * minuteMs);
    await ring(name);
    await answering(name, "unknown");
    await at(noon + 24 * minuteMs);
    await ring(name);
    expect(await totalsOf(name)).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it("asks about forty such jobs, 25 seconds each: all keep their places", async () => {
    await at(noon);
    for (let count = 0; count < 40; count++) {
      const admission = newAdmission(noon);
      await meterOf(name).admit(request({ admission, ttlMs }));
      await meterOf(name).bind([{ admission, upstreamId: admission }]);
    }
    let now = noon + ttlMs;
    await runInDurableObject(stubOf(name), (object) => {
      object.clock = () => now;
      object.ask = async () => running;
    });
    for (; now <= noon + 30 * minuteMs; now += 25 * secondMs) {
      await ring(name);
      expect(await totalsOf(name)).toEqual({ known: 0, assumed: 0, reserved: 800_000 });
    }
  });
});

describe("attack: a /48 full of jobs of a short ttl, which are prolonged,", () => {
  const network = "addr:2001:db8:1::/48";
  const addresses = Array.from({ length: 20 }, (_, at) => `addr:2001:db8:1:${at.toString(16)}::/64`);
  const visit = (name: string, change: Partial<AdmitRequest> = {}) =>
    meterOf(name).admit(
      request({ admission: newAdmission(noon), plan: "anonymous", network, owner: "anon:1", ttlMs, ...change }),
    );
  const all = async (now: number) => {
    for (const name of [network, ...addresses]) await clockOf(name, now);
  };

  async function submitted(name: string): Promise<boolean> {
    const admission = newAdmission(noon);
    const { admitted } = await visit(name, { admission, hasNotice: true });
    if (admitted) await meterOf(name).bind([{ admission, upstreamId: name }]);
    await answering(name, running);
    return admitted;
  }

  it("admits no more than its limit, for as long as they run", async () => {
    let admitted = 0;
    for (const [round, begin] of [0, 10].entries()) {
      await all(noon + round * 3 * minuteMs);
      for (const name of addresses.slice(begin, begin + 10)) admitted += Number(await submitted(name));
      for (let later = 0; later < 3 * minuteMs; later += 10 * secondMs) {
        await all(noon + round * 3 * minuteMs + later);
        for (const name of [...addresses, network]) await ring(name);
        await audit(network);
      }
    }
    expect(admitted).toBe(10);
    expect(await totalsOf(network)).toEqual({ known: 0, assumed: 0, reserved: 200_000 });
    for (const name of addresses) await audit(name);
  });

  it("hears of one after it has given it up: it counts again, until its end", async () => {
    const [name = ""] = addresses;
    await all(noon);
    await submitted(name);
    await clockOf(network, noon + 12 * minuteMs);
    await ring(network);
    expect((await totalsOf(network)).reserved).toBe(0);
    await clockOf(name, noon + 12 * minuteMs);
    await ring(name);
    expect(await totalsOf(network)).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
    await audit(network);
    await answering(name, completed);
    await clockOf(name, noon + 23 * minuteMs);
    for (let time = 0; time < 2; time++) await ring(name);
    expect(await totalsOf(network)).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
    await audit(network);
  });
});
