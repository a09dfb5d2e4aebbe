// Attacks by calls that come to nothing: whoever was not served pays nothing, and is locked out by nothing.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Attacked, type Money, opened, openedUsd } from "../../e2e/support/attacked.ts";
import { type Script, send } from "../../e2e/support/scripted-upstream.ts";
import { eventually } from "../../support/serve-eventually.ts";

/** Money in doubt is held for a minute. */
const doubtEndsWithinMs = 90_000;
const onePlace = [{ unit: "jobs", limit: 1 }] as const;

let attacked: Attacked;
beforeAll(async () => {
  attacked = await Attacked.start();
  for (const [name, , script] of [...inDoubt, ...notTaken]) {
    await attacked.operate("PUT", `/admin/models/${name}`, { passthrough: true, maxUsd: openedUsd });
    attacked.upstream.scripts.set(name, script);
  }
});
afterAll(() => attacked.stop());

type Case = readonly [model: string, what: string, script: Script];

const says = (status: number, body: unknown): Script => {
  return ({ method }, response) => {
    if (method === "POST") send(response, status, body);
    return method === "POST";
  };
};

/** Nobody knows whether the upstream took these. */
const inDoubt: readonly Case[] = [
  [
    "resets",
    "M5: a connection that breaks",
    (_, response) => {
      response.destroy();
      return true;
    },
  ],
  ["no-id", "L1: an answer without an id", says(200, { status: "IN_QUEUE" })],
  ["number-id", "L1: an id that is a number", says(200, { id: 5, status: "IN_QUEUE" })],
  ["path-id", "L1: an id that is a path", says(200, { id: "a/../b", status: "IN_QUEUE" })],
  ["array", "L1: an answer that is no object", says(200, [])],
];

/** By its own word the upstream did not. */
const notTaken: readonly Case[] = [
  ["says-503", "503", says(503, { error: "busy" })],
  ["says-521", "521", says(521, { error: "web server is down" })],
  ["says-523", "523", says(523, { error: "origin is unreachable" })],
  ["says-400", "400", says(400, { error: "not like this" })],
  ["says-301", "301", says(301, {})],
];

describe("a submit that is in doubt", { concurrent: true, timeout: doubtEndsWithinMs + 30_000 }, () => {
  it.each(inDoubt)("%s, %s: frees its place at once, and its money within a minute", async (model) => {
    const user = await attacked.user(`doubt-${model}`, onePlace);
    for (const _ of [1, 2, 3]) {
      const answer = await user.run(model, {});
      expect(answer.status, answer.text).toBeGreaterThanOrEqual(502);
      await eventually("the place", 3000, async () => (await user.usage()).limits[0]?.used === 0);
    }
    let money: Money | undefined;
    await eventually("the end of the reservations", doubtEndsWithinMs, async () => {
      money = await user.money();
      return money.reservedUsd === 0;
    });
    expect(money).toMatchObject({ usd: 0 });
    const { jobs } = await user.usage();
    expect(jobs.filter(({ costUsd }) => costUsd !== 0)).toEqual([]);
  });
});

describe("attack M5: a submit that was not taken", { timeout: 60_000 }, () => {
  it.each(notTaken)("%s: holds nothing", async (model) => {
    const user = await attacked.user(`refused-${model}`, onePlace);
    const answer = await user.run(model, {});
    expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
    await eventually("the release", 3000, async () => (await user.money()).reservedUsd === 0);
    expect((await user.usage()).limits[0]).toMatchObject({ used: 0 });
    expect(await user.money()).toMatchObject({ usd: 0, assumedUsd: 0 });
    expect((await user.run(opened, {})).status).toBe(200);
  });
});

it("attack M5: an upstream that refuses connections locks nobody out, and charges nobody", {
  timeout: 120_000,
}, async () => {
  const deserted = await Attacked.start();
  try {
    await deserted.limitVisitors([{ unit: "jobs", limit: 1 }]);
    const user = await deserted.user("m5-refused", onePlace);
    await deserted.upstream.close();
    for (const _ of [1, 2, 3]) {
      const answer = await user.run(opened, {}, { policy: { ttl: 10_000 } });
      expect(answer.body["code"]).toMatch(/^UPSTREAM_/);
      await eventually("the place", 3000, async () => (await user.usage()).limits[0]?.used === 0);
    }
    await eventually("the money", doubtEndsWithinMs, async () => (await user.money()).reservedUsd === 0);
    expect(await user.money()).toMatchObject({ usd: 0 });
  } finally {
    await deserted.server.stop();
  }
});
