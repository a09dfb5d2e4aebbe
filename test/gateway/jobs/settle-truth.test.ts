// A cost that becomes known later is settled, in the same isolate too; what was told is told once.
import { expect, it } from "vitest";
import { FakeUpstream, json, model, watchCanary } from "./fake-upstream.ts";
import { MeterTap } from "./meter-tap.ts";

watchCanary();

const job = (status: string, more: object = {}) => ({ id: "job-1", status, ...more });
const paid = { output: { image_url: "https://cdn.example.net/a.png", cost: 0.5 } };

async function submitted() {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(() => json({}), { USER_METER: tap.namespace });
  const id = await upstream.job();
  tap.calls.length = 0;
  const see = async (operation: string, answer: object, method = "GET") => {
    upstream.answer = () => json(answer);
    await upstream.call(method, `/v2/${model}/${operation}/${id}`);
  };
  return { tap, upstream, see };
}

it("attack M2: CANCELLED without a cost, then COMPLETED with one: the picture is paid for", async () => {
  const { upstream, see } = await submitted();
  await see("cancel", job("CANCELLED"), "POST");
  await see("status", job("COMPLETED", paid));
  expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.5 }]);
});

it("attack M2: COMPLETED without a cost, then with one", async () => {
  const { upstream, see } = await submitted();
  await see("status", job("COMPLETED", { output: { image_url: paid.output.image_url } }));
  await see("status", job("COMPLETED", paid));
  expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.5 }]);
});

it.each([
  ["a known cost", job("COMPLETED", paid)],
  ["no cost", job("CANCELLED")],
  ["times", job("COMPLETED", { ...paid, delayTime: 10, executionTime: 20 })],
])("an end with %s is told once, however often it is asked for", async (_name, answer) => {
  const { tap, see } = await submitted();
  for (const operation of ["status", "status", "status-sync"]) await see(operation, answer);
  expect(tap.names()).toEqual(["settle"]);
});

it("says when the upstream was asked, which is before it was seen", async () => {
  const { tap, see } = await submitted();
  const before = Date.now();
  await see("status", job("COMPLETED", paid));
  const [[ending] = []] = tap.of("settle") as [{ askedAt: number; seenAt: number }][];
  expect(ending?.askedAt).toBeGreaterThanOrEqual(before);
  expect(ending?.askedAt).toBeLessThanOrEqual(ending?.seenAt ?? 0);
});
