// What left for the caller before its job's end: the payer's meter hears of it first, and of more at most once a second.
import { afterEach, describe, expect, it, vi } from "vitest";
import { handedOut } from "../../../src/gateway/jobs/handed-out.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, watchCanary } from "./fake-upstream.ts";
import { MeterTap } from "./meter-tap.ts";

watchCanary();

const usualMs = handedOut.everyMs;
afterEach(() => {
  handedOut.everyMs = usualMs;
});

const model = "gpt-oss-120b";
const words = "ä word ";
const chunk = { output: { text: [words], output_tokens: 2 }, metrics: { stream_index: 1, scenario: "not text" } };
const bytes = new TextEncoder().encode(words).byteLength;

async function running() {
  const tap = new MeterTap();
  const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }), { USER_METER: tap.namespace });
  const body = { input: { prompt: "a story" } };
  const submitted = await upstream.call("POST", `/v2/${model}/run`, { body });
  const { id } = await submitted.json<{ id: string }>();
  tap.calls.length = 0;
  const ask = (operation: string, answer: () => Response, method = "GET") => {
    upstream.answer = answer;
    return upstream.call(method, `/v2/${model}/${operation}/${id}`);
  };
  return { tap, upstream, id, ask };
}

const streaming =
  (chunks: unknown[], status = "IN_PROGRESS") =>
  () =>
    json({ status, stream: chunks });
const partly =
  (output: unknown, status = "IN_PROGRESS") =>
  () =>
    json({ id: "job-1", status, output });

describe("attack H4: text that is handed out by", () => {
  it("stream is told to the meter before it leaves", async () => {
    const { tap, ask } = await running();
    tap.lose = ({ name }) => (name === "handOut" ? "question" : undefined);
    await expectProblem(await ask("stream", streaming([chunk])), "METER_UNAVAILABLE");
    tap.lose = () => undefined;
    expect((await ask("stream", streaming([chunk, chunk]))).status).toBe(200);
    expect(tap.of("handOut").at(-1)).toEqual([
      expect.any(String),
      { upstreamId: "job-1", pieces: 2, textBytes: 2 * bytes, whole: false },
    ]);
  });

  it("later streams is told together, and before a cancel goes upstream", async () => {
    const { tap, upstream, ask } = await running();
    await ask("stream", streaming([chunk]));
    handedOut.everyMs = 500;
    const chunks = [[chunk], [chunk, chunk]];
    const next = () => streaming(chunks.shift() ?? [])();
    const later = [ask("stream", next), ask("stream", next)];
    await vi.waitFor(() => expect(chunks).toEqual([]));
    expect(tap.of("handOut")).toHaveLength(1);
    const told = () => tap.of("handOut").map(([, handed]) => (handed as { pieces: number }).pieces);
    const cancelled = ask(
      "cancel",
      () => {
        expect(told()).toEqual([1, 3]);
        return json({ id: "job-1", status: "CANCELLED" });
      },
      "POST",
    );
    expect((await cancelled).status).toBe(200);
    await Promise.all(later);
    expect(told()).toEqual([1, 3]);
    expect(upstream.seen.at(-1)?.path).toContain("/cancel/");
  });

  it("an events' stream is told as it goes", async () => {
    const { tap, upstream, id } = await running();
    const chunks = [[chunk], [chunk, chunk], []];
    upstream.answer = ({ path }) =>
      path.includes("/status/")
        ? json({ id: "job-1", status: "COMPLETED", output: [{ cost: 0.001 }] })
        : json({ status: "COMPLETED", stream: chunks.shift() ?? [] });
    await upstream.call("GET", `/v2/${model}/events/${id}`);
    const told = tap.of("handOut").map(([, handed]) => handed as { pieces: number });
    expect(told.reduce((sum, { pieces }) => sum + pieces, 0)).toBe(3);
  });

  it.each([
    ["a large stream", "stream", streaming([{ output: "x".repeat(400 * 1024) }]), false],
    ["a large status", "status", partly("x".repeat(400 * 1024)), true],
  ])("%s is told by its length, as much as came at once before it leaves", async (_name, operation, answer, whole) => {
    const { tap, ask } = await running();
    expect((await ask(operation, answer)).status).toBe(200);
    const told = tap.of("handOut").map(([, handed]) => handed as { textBytes: number; whole: boolean });
    expect(told[0]?.textBytes).toBeGreaterThan(256 * 1024);
    expect(told.every((handed) => handed.whole === whole)).toBe(true);
    const sum = whole ? (told.at(-1)?.textBytes ?? 0) : told.reduce((all, { textBytes }) => all + textBytes, 0);
    expect(sum).toBeGreaterThan(400 * 1024);
  });

  it.each(["status", "status-sync"])("a partial output in %s is told as all of it so far, once", async (operation) => {
    const { tap, ask } = await running();
    await ask(operation, partly([words, words]));
    await ask(operation, partly([words, words]));
    expect(tap.of("handOut").map(([, handed]) => handed)).toEqual([
      { upstreamId: "job-1", pieces: 2, textBytes: 2 * bytes, whole: true },
    ]);
    await ask(operation, partly([words, words, words]));
    expect(tap.of("handOut").at(-1)?.[1]).toMatchObject({ pieces: 3, textBytes: 3 * bytes, whole: true });
  });

  it.each(["CANCELLED", "TIMED_OUT"])("a last answer of a job that is %s is told before its end", async (status) => {
    const { tap, ask } = await running();
    await ask("status", partly(words, status));
    expect(tap.names()).toEqual(["handOut", "settle"]);
  });

  it.each([
    ["nothing to say", { id: "job-1", status: "IN_PROGRESS" }],
    ["an empty output", { id: "job-1", status: "IN_PROGRESS", output: [] }],
  ])("a poll with %s costs no call", async (_name, answer) => {
    const { tap, ask } = await running();
    await ask("status", () => json(answer));
    await ask("stream", streaming([]));
    expect(tap.calls).toEqual([]);
  });

  it("a job that states its cost is told nothing more of", async () => {
    const { tap, ask } = await running();
    await ask("status", partly([{ text: words, cost: 0.001 }], "COMPLETED"));
    await ask("status", partly([{ text: words, cost: 0.001 }], "COMPLETED"));
    expect(tap.names()).toEqual(["settle"]);
  });
});
