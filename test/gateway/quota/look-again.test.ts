// A notice whose end the upstream does not confirm: the alarm asks again after 2, 10 and 30 seconds.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { meterOf, noon, request, stubOf } from "./admissions.ts";

const payer = "user:told";
const at = (now: number) =>
  runInDurableObject(stubOf(payer), (object) => {
    object.clock = () => now;
  });
const asynchronous = { ttlMs: 24 * 60 * 60_000, retentionMs: 30 * 60_000 };

afterEach(emptyStorage);

it("asks after 2, 10 and 30 seconds, and then as before", async () => {
  const asked: number[] = [];
  await at(noon);
  const job = request(asynchronous);
  await meterOf(payer).admit(job);
  const binding = { admission: job.admission, upstreamId: "job-1" };
  await meterOf(payer).bind([binding]);
  await meterOf(payer).lookAgain(binding);
  let now = noon;
  await runInDurableObject(stubOf(payer), (object) => {
    object.clock = () => now;
    object.ask = async () => {
      asked.push(now - noon);
      return { status: "IN_PROGRESS", costMicroUsd: null, completedAt: 0 };
    };
  });
  for (now = noon; now < noon + 2 * 60_000; now += 1_000) await runDurableObjectAlarm(stubOf(payer));
  expect(asked).toEqual([2_000, 10_000, 30_000]);
});

it("asks about the id of a notice that came before the relay's word, which goes before it", async () => {
  await at(noon);
  const job = request(asynchronous);
  await meterOf(payer).admit(job);
  await meterOf(payer).lookAgain({ admission: job.admission, upstreamId: "job-1" });
  expect(await meterOf(payer).job(job.admission)).toMatchObject({ upstreamId: null, endedAt: null });
  await meterOf(payer).bind([{ admission: job.admission, upstreamId: "job-2" }]);
  await meterOf(payer).lookAgain({ admission: job.admission, upstreamId: "job-1" });
  expect(await meterOf(payer).job(job.admission)).toMatchObject({ upstreamId: "job-2", endedAt: null });
});

it.each(["open", "in doubt"])(
  "an id that the upstream does not know ends no admission that is %s, and costs nothing",
  async (stage) => {
    await at(noon);
    await runInDurableObject(stubOf(payer), (object) => {
      object.ask = async () => "unknown";
    });
    const job = request({ ...asynchronous, hasNotice: true });
    await meterOf(payer).admit(job);
    if (stage === "in doubt") await meterOf(payer).doubt(job.admission);
    await meterOf(payer).lookAgain({ admission: job.admission, upstreamId: "made-up" });
    await at(noon + 2_500);
    await runDurableObjectAlarm(stubOf(payer));
    expect(await meterOf(payer).job(job.admission)).toMatchObject({ endedAt: null });
    await at(noon + 11 * 60_000);
    await runDurableObjectAlarm(stubOf(payer));
    expect(await meterOf(payer).job(job.admission)).toMatchObject({ costMicroUsd: 0, isAssumed: true });
  },
);

it("attack A3: another job's end, named by a notice while the relay is under way, is corrected by the relay's own job", async () => {
  await at(noon);
  await runInDurableObject(stubOf(payer), (object) => {
    object.ask = async () => ({ status: "FAILED", costMicroUsd: null, completedAt: noon, body: "another's" });
  });
  const job = request({ ...asynchronous, hasNotice: true, webhook: "https://app.example.com/told" });
  await meterOf(payer).admit(job);
  await meterOf(payer).lookAgain({ admission: job.admission, upstreamId: "another's" });
  await at(noon + 2_500);
  await runDurableObjectAlarm(stubOf(payer));
  expect(await meterOf(payer).job(job.admission)).toMatchObject({ isGuessed: true, isAssumed: true, costMicroUsd: 0 });
  await meterOf(payer).bind([{ admission: job.admission, upstreamId: "its-own" }]);
  expect(await meterOf(payer).job(job.admission)).toMatchObject({ isGuessed: false, upstreamId: "its-own" });
  const truth = { admission: job.admission, upstreamId: "its-own", status: "COMPLETED", costMicroUsd: 800 } as const;
  const moments = { askedAt: noon + 3_500, seenAt: noon + 3_500, completedAt: noon + 3_500 };
  await meterOf(payer).settle({ ...truth, ...moments });
  expect(await meterOf(payer).job(job.admission)).toMatchObject({ costMicroUsd: 800, isAssumed: false });
});
