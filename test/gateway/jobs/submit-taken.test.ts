// Not taken, taken, in doubt: one list says what becomes of an admission whose submit failed.
import { describe, expect, it, vi } from "vitest";
import { FakeUpstream, json, model, prompt, watchCanary } from "./fake-upstream.ts";
import { MeterTap } from "./meter-tap.ts";

watchCanary();

type Answer = () => Response;
const reset: Answer = () => {
  throw new Error("Network connection lost.");
};
/** A service that is full is asked again for two seconds: it says when, and that is too late. */
const status =
  (code: number): Answer =>
  () =>
    json({ error: "no" }, code, { "Retry-After": "60" });

/** What the meter hears after the admission. */
async function heardOf(answer: Answer, operation = "run", body: unknown = prompt) {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(answer, { USER_METER: tap.namespace });
  const response = await upstream.submit(operation, body);
  expect(response.ok).toBe(false);
  const [admit, ...after] = tap.names();
  expect(admit).toBe("admit");
  return { after, upstream, response };
}

const vast = "x".repeat(300 * 1024);

/** Of a large answer, to its end or to where it breaks off. */
async function heardOfNameless(answer: Answer): Promise<string[]> {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(answer, { USER_METER: tap.namespace });
  await upstream
    .submit("runsync", prompt)
    .then((response) => response.arrayBuffer())
    .catch(() => {});
  return tap.names();
}

describe("a submit that the upstream did not take is given back at once", () => {
  it.each([301, 307, 400, 401, 404, 409, 413, 422, 429, 503, 521, 523])("attack M5: %i", async (code) => {
    const { after, upstream } = await heardOf(status(code));
    expect(after).toEqual(["release"]);
    expect(await upstream.jobs()).toEqual([]);
  });

  it.each([429, 503, 521, 523])("after it was tried again: %i", async (code) => {
    const upstream = new FakeUpstream(() =>
      upstream.seen.length < 3 ? json({}, code) : json({ id: "a", status: "IN_QUEUE" }),
    );
    expect((await upstream.submit("run", prompt)).status).toBe(200);
    expect(upstream.seen).toHaveLength(3);
  });
});

describe("a submit that the upstream may have taken is left in doubt", () => {
  it.each<[string, Answer]>([
    ["attack M5: a connection that was refused, or broke", reset],
    ["500", status(500)],
    ["502", status(502)],
    ["522", status(522)],
    ["no JSON", () => new Response("<html>")],
    ["half of an answer", () => new Response('{"id":"job-1"', { headers: { "Content-Type": "application/json" } })],
    ["attack L1: no id", () => json({ status: "IN_QUEUE" })],
    ["attack L1: an id that is a number", () => json({ id: 5, status: "IN_QUEUE" })],
    ["attack L1: an id that would lead elsewhere", () => json({ id: "a/../b", status: "IN_QUEUE" })],
    ["attack L1: a list", () => json([])],
  ])("%s", async (_name, answer) => {
    for (const operation of ["run", "runsync"]) expect((await heardOf(answer, operation)).after).toEqual(["doubt"]);
  });

  it("a large answer without an id, of a job that waits", async () => {
    expect(await heardOfNameless(() => json({ status: "IN_QUEUE", note: vast }))).toEqual(["admit", "doubt"]);
  });

  it("a large answer that broke off before its id: what of it was handed out is paid", async () => {
    const half = `{"status":"COMPLETED","output":{"text":"${vast}`;
    const answer = () => new Response(half, { headers: { "Content-Type": "application/json" } });
    expect(await heardOfNameless(answer)).toEqual(["admit", "handOut", "doubt"]);
  });
});

it("a large answer without an id, of a job that is done, is paid: whoever was given its output asks no more", async () => {
  expect(await heardOfNameless(() => json({ status: "COMPLETED", output: { note: vast } }))).toEqual([
    "admit",
    "settle",
  ]);
});

it("a retry that was refused, and one that broke, are told apart as a submit is", async () => {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(() => json({}), { USER_METER: tap.namespace });
  const id = await upstream.job();
  for (const [answer, end] of [
    [status(409), "release"],
    [reset, "doubt"],
    [status(523), "release"],
    [status(500), "doubt"],
  ] as const) {
    tap.calls.length = 0;
    upstream.answer = answer;
    await upstream.call("POST", `/v2/${model}/retry/${id}`);
    expect(tap.names()).toEqual(["job", "admit", end]);
  }
});

it("a large body whose last byte was not sent is given back, whatever was answered", async () => {
  const large = `{"input":{"prompt":"x","image":"${"x".repeat(2 * 1024 * 1024)}"}}`;
  for (const end of [reset, status(500), () => json({ id: "job-1" })]) {
    const tap = new MeterTap();
    const upstream = new FakeUpstream(() => json({}), { USER_METER: tap.namespace });
    await upstream.token();
    vi.mocked(fetch).mockImplementationOnce(async (input, init) => {
      const reader = new Request(input, init).body?.getReader();
      await reader?.read();
      await reader?.cancel("gone");
      return end();
    });
    expect((await upstream.submit("run", large)).ok).toBe(false);
    expect(tap.names()).toEqual(["admit", "release"]);
  }
});
