// The client of the upstream in time: what stalls is given up, what was refused is tried again, what is down is left alone.
import { describe, expect, it, vi } from "vitest";
import { Breaker } from "../../../src/gateway/upstream/breaker.ts";
import {
  type Call,
  type CallOut,
  callUpstream,
  type Times,
  type Upstream,
} from "../../../src/gateway/upstream/upstream.ts";
import { openJob, readJob } from "../../../src/gateway/upstream/upstream-answer.ts";
import { SecretSearch } from "../../../src/json/secret-search.ts";

const times: Times = { headMs: 40, bodyMs: 40, streamMs: 80, retryMs: 60 };
const key = "canary-key-of-the-upstream-0123456789";
const poll: Call = { method: "GET", segments: ["m", "status", "a"], repeatable: true };
const submit: Call = { method: "POST", segments: ["m", "run"], repeatable: false, body: "{}" };
const ok = () => Response.json({ id: "a", status: "IN_QUEUE" });
const head = { headers: { "Content-Type": "application/json" } };

function upstreamOf(send: Upstream["send"]): Upstream & { send: ReturnType<typeof vi.fn<Upstream["send"]>> } {
  const keySearch = new SecretSearch([key]);
  return {
    base: "https://up.example.com/v2",
    keys: [key],
    keySearch,
    send: vi.fn(send),
    breaker: new Breaker(),
    payer: "user:ada",
    times,
  };
}

/** As fetch does: nothing, until the signal says so. */
const stalls: CallOut = (_url, { signal }) =>
  new Promise<Response>((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason));
  });
const reset = async (): Promise<Response> => {
  throw new Error("Network connection lost.");
};

/** A body that begins, and then takes its time. */
function slow(everyMs: number, piece = " "): { response: Response; cancelled: () => boolean } {
  let cancelled = false;
  const body = new ReadableStream({
    type: "bytes",
    start: (controller) => controller.enqueue(new TextEncoder().encode(`{"id":"a",`)),
    async pull(controller) {
      await scheduler.wait(everyMs);
      if (!cancelled) controller.enqueue(new TextEncoder().encode(piece));
    },
    cancel() {
      cancelled = true;
    },
  });
  return { response: new Response(body, head), cancelled: () => cancelled };
}

describe("an upstream that takes its time", () => {
  it("before the head is given up, and not asked again", async () => {
    const upstream = upstreamOf(stalls);
    await expect(callUpstream(upstream, poll)).rejects.toMatchObject({ code: "UPSTREAM_TIMEOUT" });
    expect(upstream.send).toHaveBeenCalledTimes(1);
  });

  it("is given the wait that it was asked for on top", async () => {
    const upstream = upstreamOf(async () => {
      await scheduler.wait(times.headMs * 2);
      return ok();
    });
    await expect(callUpstream(upstream, { ...poll, waitMs: 5_000 })).resolves.toMatchObject({
      response: { status: 200 },
    });
  });

  it.each([
    ["stalls in the body", 60_000],
    ["drips", 5],
  ])("that %s is given up, and its connection with it", async (_name, everyMs) => {
    const { response, cancelled } = slow(everyMs);
    const upstream = upstreamOf(async () => response);
    await expect(readJob(await callUpstream(upstream, poll))).rejects.toMatchObject({
      code: "UPSTREAM_TIMEOUT",
    });
    expect(cancelled()).toBe(true);
  });

  it("stalls in an error's body no longer than in another's", async () => {
    const upstream = upstreamOf(async () => new Response(slow(60_000).response.body, { status: 400, ...head }));
    const answer = callUpstream(upstream, poll).then((answered) => openJob(answered));
    await expect(answer).rejects.toMatchObject({ code: "UPSTREAM_TIMEOUT" });
  });

  it("waits for the head only once a streamed body was sent", async () => {
    const sent = Promise.withResolvers<void>();
    const upstream = upstreamOf(stalls);
    const body = new ReadableStream({ type: "bytes" });
    const started = Date.now();
    const call = callUpstream(
      { ...upstream, times: { ...times, streamMs: 60_000 } },
      { ...submit, body, sent: sent.promise },
    );
    await scheduler.wait(2 * times.headMs);
    sent.resolve();
    await expect(call).rejects.toMatchObject({ code: "UPSTREAM_TIMEOUT" });
    expect(Date.now() - started).toBeGreaterThanOrEqual(3 * times.headMs - 5);
  });

  it("does not read a streamed body for ever", async () => {
    const call = { ...submit, body: new ReadableStream({ type: "bytes" }), sent: new Promise(() => {}) };
    await expect(callUpstream(upstreamOf(stalls), call)).rejects.toMatchObject({ code: "UPSTREAM_TIMEOUT" });
  });
});

describe("another try", () => {
  const failing = (failures: number, fail: () => Promise<Response>) => {
    let left = failures;
    const upstream = upstreamOf(async () => (left-- > 0 ? fail() : ok()));
    // No machine is so busy that its clock decides here: no try waits at all.
    return { ...upstream, times: { ...times, retryMs: 5_000 } };
  };
  const busy = async () => Response.json({}, { status: 429 });

  it.each([
    ["a poll that was refused", poll, reset, 2],
    ["a poll that was told to come back", poll, busy, 2],
    ["a submission that was told to come back", submit, busy, 2],
    ["a submission to a service that is not there", submit, async () => new Response("", { status: 503 }), 2],
    ["a submission that may have arrived: never", submit, reset, 1],
    ["a submission that failed: never", submit, async () => new Response("", { status: 500 }), 1],
    ["a body that streams: never", { ...submit, body: new ReadableStream() }, busy, 1],
    [
      "one that is asked for later than can be waited",
      submit,
      async () => Response.json({}, { status: 429, headers: { "Retry-After": "7" } }),
      1,
    ],
  ])("%s", async (_name, call, fail, tries) => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const upstream = failing(1, fail);
    await callUpstream(upstream, call).catch(() => {});
    expect(upstream.send).toHaveBeenCalledTimes(tries);
  });

  it("comes to an end", async () => {
    const upstream = upstreamOf(reset);
    await expect(callUpstream(upstream, poll)).rejects.toMatchObject({ code: "UPSTREAM_UNREACHABLE" });
    const last = upstreamOf(busy);
    expect((await callUpstream(last, submit)).response.status).toBe(429);
  });
});

describe("the circuit breaker", () => {
  const payers = ["user:ada", "user:bob", "user:eve", "addr:203.0.113.7/32", "user:mallory"];
  const down = async () => new Response("", { status: 503 });
  /** Each payer's call, one after the other. */
  const fail = async (upstream: Upstream, by: readonly string[], call = submit) => {
    for (const payer of by) await callUpstream({ ...upstream, payer }, call).catch(() => {});
  };
  const later = (ms: number) => vi.spyOn(Date, "now").mockReturnValue(Date.now() + ms);

  it.each([
    ["a broken connection", reset],
    ["502", async () => new Response("", { status: 502 })],
    ["503", down],
    ["504", async () => new Response("", { status: 504 })],
  ])(
    "opens when five payers in a row met with %s, fails fast, and lets one trial through after a while",
    async (_, broken) => {
      vi.spyOn(Math, "random").mockReturnValue(1);
      const upstream = { ...upstreamOf(broken), times: { ...times, retryMs: 0 } };
      await fail(upstream, payers);
      await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_DOWN", status: 503 });
      expect(upstream.send).toHaveBeenCalledTimes(payers.length);
      later(5_001);
      await fail(upstream, ["user:ada"]);
      await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_DOWN" });
      expect(upstream.send).toHaveBeenCalledTimes(payers.length + 1);
    },
  );

  it("attack M1: one model's 503 takes no other model down", async () => {
    const upstream = upstreamOf(async (url) => (url.includes("/m/") ? new Response("", { status: 503 }) : ok()));
    await fail(upstream, payers);
    await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_DOWN" });
    const other = await callUpstream(upstream, { ...submit, segments: ["n", "run"] });
    expect(other.response.status).toBe(200);
  });

  it("attack M1: of one payer's failures only one counts, whatever he sends, and each call's tries are one", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.001);
    const upstream = upstreamOf(down);
    await fail(upstream, [...payers.slice(0, 4), ...new Array<string>(10).fill("user:ada")]);
    expect(upstream.send.mock.calls.length).toBeGreaterThan(2 * 14);
    upstream.send.mockImplementation(async () => ok());
    expect((await callUpstream(upstream, submit)).response.status).toBe(200);
  });

  it("is not kept open by one payer who takes each trial", async () => {
    const upstream = upstreamOf(reset);
    await fail(upstream, payers);
    for (let trials = 0; trials < 7; trials++) {
      later(5_001);
      await fail(upstream, ["user:mallory"]);
    }
    upstream.send.mockImplementation(async () => ok());
    expect((await callUpstream(upstream, submit)).response.status).toBe(200);
  });

  it("closes with one good answer, and begins to count anew", async () => {
    const upstream = upstreamOf(reset);
    await fail(upstream, payers.slice(0, 4));
    upstream.send.mockImplementationOnce(async () => ok());
    await fail(upstream, payers);
    await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_UNREACHABLE" });
  });

  it("counts no answer to one request, no caller that left, and no body that broke off", async () => {
    const upstream = upstreamOf(reset);
    for (const status of [400, 401, 404, 413, 500, 501]) {
      upstream.send.mockImplementation(async () => new Response("", { status }));
      await fail(upstream, payers);
    }
    upstream.send.mockImplementation(reset);
    await fail(upstream, payers, { ...submit, signal: AbortSignal.abort() });
    await fail(upstream, payers, { ...submit, body: new ReadableStream(), sent: Promise.reject() });
    const slow = { ...upstream, send: stalls, times: { ...times, streamMs: 1 } };
    await fail(slow, payers, { ...submit, body: new ReadableStream(), sent: new Promise(() => {}) });
    upstream.send.mockImplementation(async () => ok());
    expect((await callUpstream(upstream, submit)).response.status).toBe(200);
  });

  it("lets one call through at a time, however many come at once", () => {
    const breaker = new Breaker();
    for (const payer of payers) breaker.failed("m", payer, 0);
    const asked = [4_999, 5_000, 5_000, 9_999, 10_000, 10_000].map((now) => breaker.isOpen("m", now));
    expect(asked).toEqual([true, false, true, true, false, true]);
  });

  it("remembers no more models than it has room for", async () => {
    const breaker = new Breaker();
    for (const payer of payers) breaker.failed("first", payer, 0);
    expect(breaker.isOpen("first", 0)).toBe(true);
    for (let model = 0; model < 256; model++) breaker.failed(`model-${model}`, "user:ada", 0);
    expect(breaker.isOpen("first", 0)).toBe(false);
  });
});

it("never follows a redirect, and goes nowhere but to its base", async () => {
  const upstream = upstreamOf(async () => ok());
  await callUpstream(upstream, { ...poll, query: "wait=1000" });
  const [url, init] = upstream.send.mock.calls[0] ?? [];
  expect(url).toBe("https://up.example.com/v2/m/status/a?wait=1000");
  expect(init).toMatchObject({ redirect: "manual" });
});

it("leaves with its caller", async () => {
  const caller = new AbortController();
  const call = callUpstream(upstreamOf(stalls), { ...poll, signal: caller.signal });
  caller.abort();
  await expect(call).rejects.toMatchObject({ code: "UPSTREAM_UNREACHABLE" });
});
