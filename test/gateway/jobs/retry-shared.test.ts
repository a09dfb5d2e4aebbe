// A retry of a job that others share is a job of its own; of one that nobody shares it is the same job once more.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SharedRequest } from "../../../src/gateway/media/shared-request.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, model, painted, Studio, World } from "../media/studio.ts";
import { MeterTap } from "./meter-tap.ts";

let world: World;
let tap: MeterTap;
let studio: Studio;
/** The objects of shared requests that were asked. */
let woken: string[];

afterEach(emptyStorage);
beforeEach(() => {
  world = new World();
  tap = new MeterTap();
  woken = [];
  const getByName = (name: string) => {
    woken.push(name);
    return env.SHARED_REQUEST.getByName(name);
  };
  studio = new Studio({ USER_METER: tap.namespace, SHARED_REQUEST: { getByName } });
});

const failed = { status: "FAILED", error: "out of memory" };

async function submit(token: string): Promise<string> {
  return (await (await studio.paint(token, { operation: "run" })).json<{ id: string }>()).id;
}

const ask = (operation: string, id: string, token: string, method = "GET") =>
  studio.ask(`/v2/${model}/${operation}/${id}`, token, method);
const flightOf = () => env.SHARED_REQUEST.getByName(woken[0] ?? "");
const clockOf = (now: number) =>
  runInDurableObject(flightOf(), (object: SharedRequest) => {
    object.clock = () => now;
  });
const keptUntil = () =>
  runInDurableObject(flightOf(), (_object, { storage: { sql } }) =>
    Number(sql.exec("SELECT MIN(until) AS at FROM kept").one()["at"]),
  );
const lastRetryOf = () => {
  const [request] = tap.of("admit").at(-1) ?? [];
  return (request as AdmitRequest | undefined)?.retryOf;
};

describe("a failed job that two requests share", () => {
  /** The leader's handle and the other's, of a job that both saw fail. */
  async function shared(token: string) {
    world.submitted = () => failed;
    const ids = [await submit(token), await submit(token)];
    expect(world.count("/run")).toBe(1);
    for (const id of ids) expect(await (await ask("status", id, token)).json()).toMatchObject({ status: "FAILED" });
    world.submitted = () => painted("https://cdn.example.net/again.png");
    return ids as [string, string];
  }

  it.each([
    ["the first one's", 0],
    ["the other one's", 1],
  ])("is submitted as a new job by %s retry, which pays for itself alone", async (_name, which) => {
    const token = await studio.token("ada");
    const ids = await shared(token);
    const again = await (await ask("retry", ids[which] ?? "", token, "POST")).json<{ id: string; status: string }>();
    expect(again.status).toBe("IN_QUEUE");
    expect(ids).not.toContain(again.id);
    expect(world.count("/retry")).toBe(0);
    expect(lastRetryOf()).toBeUndefined();
    expect(await (await ask("status", again.id, token)).json()).toMatchObject({ status: "COMPLETED" });
    expect(await (await ask("status", ids[1 - which] ?? "", token)).json()).toMatchObject({ status: "FAILED" });
    expect(await charged("ada")).toMatchObject({ microUsd: 2500, open: 0 });
  });

  it.each([
    ["the first one", 0],
    ["the other one", 1],
  ])("attack C2: is run again for all by nobody where its flight is forgotten: by %s", async (_name, which) => {
    const token = await studio.token("ada");
    const ids = await shared(token);
    await clockOf(Date.now() + 31 * 60_000);
    expect(await runDurableObjectAlarm(flightOf())).toBe(true);
    const refused = await ask("retry", ids[which] ?? "", token, "POST");
    expect(await refused.clone().json()).toMatchObject({ detail: expect.stringContaining("submit it again") });
    await expectProblem(refused, "NOT_RETRYABLE");
    expect(world.count("/retry")).toBe(0);
    expect(await charged("ada")).toMatchObject({ microUsd: 0, open: 0 });
  });

  it("attack C2: is known to be shared when it runs for an hour, and fails", async () => {
    const token = await studio.token("ada");
    world.submitted = () => ({ status: "IN_PROGRESS" });
    const [first = ""] = [await submit(token), await submit(token)];
    expect(await keptUntil()).toBeGreaterThan(Date.now() + 24 * 60 * 60_000);
    await clockOf(Date.now() + 60 * 60_000);
    world.becomes("job-1", failed);
    expect(await (await ask("status", first, token)).json()).toMatchObject({ status: "FAILED" });
    const again = await (await ask("retry", first, token, "POST")).json<{ id: string }>();
    expect(again.id).not.toBe(first);
    expect([world.count("/retry"), world.count("/run")]).toEqual([0, 2]);
  });

  it("is not retryable while it runs", async () => {
    const token = await studio.token("ada");
    world.submitted = () => ({ status: "IN_PROGRESS" });
    const first = await submit(token);
    await submit(token);
    await expectProblem(await ask("retry", first, token, "POST"), "NOT_RETRYABLE");
    expect(world.count("/retry")).toBe(0);
  });
});

it("a failed job of one request is retried as the same job, in one chain", async () => {
  const token = await studio.token("ada");
  world.submitted = () => failed;
  const id = await submit(token);
  expect(await (await ask("status", id, token)).json()).toMatchObject({ status: "FAILED" });
  const again = await (await ask("retry", id, token, "POST")).json<{ id: string }>();
  expect(again.id).toBe(id);
  const [upstreamId, admission] = id.split(".");
  expect(lastRetryOf()).toEqual({ admission, upstreamId });
  expect(world.count("/retry")).toBe(1);
});

it("a failed job of one request is retried again, each time within half an hour of its last end", async () => {
  const token = await studio.token("ada");
  world.submitted = () => failed;
  const id = await submit(token);
  const begun = Date.now();
  for (const minutes of [0, 25, 50]) {
    await clockOf(begun + minutes * 60_000);
    world.becomes("job-1", failed);
    expect(await (await ask("status", id, token)).json()).toMatchObject({ status: "FAILED" });
    expect((await ask("retry", id, token, "POST")).status).toBe(200);
  }
  expect([world.count("/retry"), world.count("/run")]).toEqual([3, 1]);
});
