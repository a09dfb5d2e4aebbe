// The client of the upstream in time: what stalls is given up, what was refused is tried again, what is down is left alone.
import { describe, expect, it, vi } from "vitest";
import {
  Breaker,
  type Call,
  type CallOut,
  callUpstream,
  type Times,
  type Upstream,
} from "../../src/gateway/upstream.ts";
import { openJob, readJob } from "../../src/gateway/upstream-answer.ts";
import { SecretSearch } from "../../src/wire/secret-search.ts";

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
    return upstreamOf(async () => (left-- > 0 ? fail() : ok()));
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
  const failures = 20;
  const fail = async (upstream: Upstream, count: number, call = submit) => {
    for (let n = 0; n < count; n++) await callUpstream(upstream, call).catch(() => {});
  };

  it("opens after so many failures in a row, fails fast, and lets one trial through after a while", async () => {
    const upstream = upstreamOf(reset);
    await fail(upstream, failures);
    await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_DOWN", status: 503 });
    expect(upstream.send).toHaveBeenCalledTimes(failures);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 5_001);
    await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_UNREACHABLE" });
    await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_DOWN" });
    expect(upstream.send).toHaveBeenCalledTimes(failures + 1);
  });

  it("closes with one good answer", async () => {
    const upstream = upstreamOf(reset);
    await fail(upstream, failures - 1);
    upstream.send.mockImplementationOnce(async () => ok());
    await fail(upstream, failures);
    await expect(callUpstream(upstream, submit)).rejects.toMatchObject({ code: "UPSTREAM_UNREACHABLE" });
  });

  it("counts neither a 500, nor a caller that left, nor a body that broke off", async () => {
    const upstream = upstreamOf(async () => new Response("", { status: 500 }));
    await fail(upstream, failures + 1);
    upstream.send.mockImplementation(reset);
    await fail(upstream, failures + 1, { ...submit, signal: AbortSignal.abort() });
    await fail(upstream, failures + 1, { ...submit, body: new ReadableStream(), sent: Promise.reject() });
    const slow = { ...upstream, send: stalls, times: { ...times, streamMs: 1 } };
    await fail(slow, failures + 1, { ...submit, body: new ReadableStream(), sent: new Promise(() => {}) });
    upstream.send.mockImplementation(async () => ok());
    expect((await callUpstream(upstream, submit)).response.status).toBe(200);
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
