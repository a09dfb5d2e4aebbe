// A retry of a job that others share is a job of its own; of one that nobody shares it is the same job once more.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, model, painted, Studio, World } from "../images/studio.ts";
import { MeterTap } from "./meter-tap.ts";

let world: World;
let tap: MeterTap;
let studio: Studio;
/** The objects of jobs and flights that were asked. */
let woken: string[];

afterEach(emptyStorage);
beforeEach(() => {
  world = new World();
  tap = new MeterTap();
  woken = [];
  const getByName = (name: string) => {
    woken.push(name);
    return env.GENERATION.getByName(name);
  };
  studio = new Studio({ USER_METER: tap.namespace, GENERATION: { getByName } });
});

const failed = { status: "FAILED", error: "out of memory" };

async function submit(token: string): Promise<string> {
  return (await (await studio.paint(token, { operation: "run" })).json<{ id: string }>()).id;
}

const ask = (operation: string, id: string, token: string, method = "GET") =>
  studio.ask(`/v2/${model}/${operation}/${id}`, token, method);
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

  it("is not retryable where its input is not held any more", async () => {
    const token = await studio.token("ada");
    const [, second] = await shared(token);
    const flight = woken.find((name) => name.startsWith("reuse/")) ?? "";
    expect(await runDurableObjectAlarm(env.GENERATION.getByName(flight))).toBe(true);
    const refused = await ask("retry", second, token, "POST");
    expect(await refused.clone().json()).toMatchObject({ detail: expect.stringContaining("submit it again") });
    await expectProblem(refused, "NOT_RETRYABLE");
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
