// Jobs that their owner prolonged at the model service (`status?ttl=`): the meter knows only the ttl that they were
// admitted with.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import type { UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { meterOf, noon, request, stubOf } from "./admissions.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const ttlMs = 10 * secondMs;
const claims = { plan: "unlimited", planFrom: "token" as const, plans: "{}", token: undefined };
const running = { status: "IN_PROGRESS", costMicroUsd: null, completedAt: 0 } as const;
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
