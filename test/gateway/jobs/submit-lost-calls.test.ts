// Calls of the meter whose question or answer is lost: nobody is charged or locked out for them, and no id is forgotten.
import { afterEach, describe, expect, it, vi } from "vitest";
import { pendingBinds } from "../../../src/gateway/jobs/pending-binds.ts";
import type { AdmitRequest, Binding } from "../../../src/gateway/quota/metering.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";
import { type Heard, MeterTap } from "./meter-tap.ts";

watchCanary();

const usualMs = pendingBinds.flushMs;
/** Long enough for a call that comes at once. */
const heldMs = 500;
afterEach(() => {
  pendingBinds.flushMs = usualMs;
});

const key = { "Idempotency-Key": "once" };

function stage(answer: () => Response = () => json({ id: "job-1", status: "IN_QUEUE" })) {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(answer, { USER_METER: tap.namespace });
  const losing = (name: Heard["name"], times: number, what: "question" | "answer" = "answer") => {
    let left = times;
    tap.lose = (call) => (call.name === name && left-- > 0 ? what : undefined);
  };
  return { tap, upstream, losing };
}

describe("fault H3: a lost answer of", () => {
  it("admit leaves nothing reserved, no place and no key taken", async () => {
    const { upstream, losing } = stage();
    losing("admit", 1);
    await expectProblem(await upstream.submit("run", prompt, key), "METER_UNAVAILABLE");
    expect(await upstream.jobs()).toEqual([]);
    expect(upstream.seen).toEqual([]);
    expect((await upstream.submit("run", prompt, key)).status).toBe(200);
  });

  it.each(["question", "answer"] as const)("release (its %s) charges nobody for what was refused", async (what) => {
    const { tap, upstream, losing } = stage(() => json({ error: "no" }, 400));
    losing("release", 2, what);
    await expectProblem(await upstream.submit("run", prompt), "UPSTREAM_INVALID");
    expect(tap.of("release")).toHaveLength(3);
    expect(await upstream.jobs()).toEqual([]);
  });

  it("settle charges once", async () => {
    const { tap, upstream, losing } = stage(() => json({ id: "job-1", status: "COMPLETED", output: { cost: 0.002 } }));
    losing("settle", 2);
    await upstream.submit("runsync", prompt);
    expect(tap.of("settle")).toHaveLength(3);
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.002 }]);
  });
});

describe("fault M8: a meter that takes calls and never answers", () => {
  it("keeps nobody waiting for longer than five seconds", { timeout: 20_000 }, async () => {
    const { tap, upstream } = stage();
    const handle = await upstream.job();
    tap.lose = ({ name }) => (name === "release" ? undefined : "all");
    const begun = performance.now();
    const [submitted, listed, purged, used, pictures, followed] = await Promise.all([
      upstream.submit(),
      upstream.call("GET", `/v2/${model}/requests`),
      upstream.call("POST", `/v2/${model}/purge-queue`),
      upstream.call("GET", "/usage"),
      upstream.call("GET", "/images"),
      upstream.call("GET", `/v2/${model}/status/${handle}`),
    ]);
    expect(performance.now() - begun).toBeLessThan(9_000);
    for (const refused of [submitted, listed, purged, used, pictures]) {
      await expectProblem(refused, "METER_UNAVAILABLE");
      expect(refused.headers.get("Retry-After")).toBe("1");
    }
    expect(followed.status).toBe(200);
    expect(upstream.seen.map(({ path }) => path)).toEqual([`/v2/${model}/status/job-1`]);
    tap.lose = () => undefined;
    expect((await upstream.submit()).status).toBe(200);
  });
});

describe("fault M5: the id of a job", () => {
  it("that has a key is told at once, and again where the call was lost", async () => {
    const { tap, upstream, losing } = stage();
    losing("bind", 2, "question");
    const first = await (await upstream.submit("run", prompt, key)).json();
    expect(tap.of("bind")).toHaveLength(3);
    expect(await (await upstream.submit("run", prompt, key)).json()).toEqual(first);
    expect(upstream.seen).toHaveLength(1);
  });

  it("goes with the end that is seen first", async () => {
    const { tap, upstream } = stage(() => json({ id: "job-1", status: "COMPLETED", output: { cost: 0.002 } }));
    pendingBinds.flushMs = heldMs;
    await upstream.submit("runsync", prompt, key);
    expect(tap.names()).toEqual(["admit", "settle"]);
    expect(tap.of("settle")[0]?.[1]).toEqual([{ admission: expect.any(String), upstreamId: "job-1" }]);
  });

  it("goes with the payer's next submit, and again where that call was lost", async () => {
    let count = 0;
    const { tap, upstream, losing } = stage(() => json({ id: `job-${++count}`, status: "IN_QUEUE" }));
    pendingBinds.flushMs = heldMs;
    const first = upstream.submit("run", prompt);
    await vi.waitFor(() => expect(upstream.seen).toHaveLength(1));
    losing("admit", 1, "question");
    const lost = upstream.submit("run", prompt);
    await expectProblem(await lost, "METER_UNAVAILABLE");
    await Promise.all([first, upstream.submit("run", prompt)]);
    const carried = tap.of("admit").map(([request]) => (request as AdmitRequest).binds ?? []);
    expect(carried.flat()).toContainEqual({ admission: expect.any(String), upstreamId: "job-1" });
    expect((await upstream.jobs()).map(({ status }) => status)).toEqual(["IN_QUEUE", "IN_QUEUE"]);
    const told = [...carried.flat(), ...tap.of("bind").flatMap(([binds]) => binds as Binding[])];
    expect(new Set(told.map(({ upstreamId }) => upstreamId))).toEqual(new Set(["job-1", "job-2"]));
  });

  it("goes by itself where nothing else comes", async () => {
    const { tap, upstream } = stage();
    await upstream.submit("run", prompt);
    expect(tap.names()).toEqual(["admit", "bind"]);
    expect(tap.of("bind")).toEqual([[[{ admission: expect.any(String), upstreamId: "job-1" }]]]);
  });
});

it("fault M16: runsync again with its key gets the kept result of a job that the upstream forgot", async () => {
  const { upstream } = stage(() => json({ id: "job-1", status: "IN_QUEUE" }));
  const first = await (await upstream.submit("runsync", prompt, key)).json<{ id: string }>();
  const [, admission = ""] = first.id.split(".");
  const kept = { id: first.id, status: "COMPLETED", output: { note: "made", cost: 0.002 } };
  await upstream.env.IMAGES.put(`result/${admission}`, JSON.stringify(kept));
  upstream.answer = () => json({ error: "job not found" }, 404);
  expect(await (await upstream.submit("runsync", prompt, key)).json()).toEqual(kept);
  expect(await (await upstream.call("GET", `/v2/${model}/status/${first.id}`)).json()).toEqual(kept);
});
