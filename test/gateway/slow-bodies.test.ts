// Bodies that do not come, or drip: each route that reads one gives up in time. No time passes: the clocks are the test's.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { expectProblem } from "../support/problems.ts";
import { testSettings } from "../support/settings.ts";
import { chunked, FakeUpstream, json, model, watchCanary } from "./jobs/fake-upstream.ts";

watchCanary();

const chat = "/v2/qwen3-32b-awq/openai/v1/chat/completions";
const run = `/v2/${model}/run`;
const { ADMIN_TOKEN: admin, APP_SECRET: app, PLATFORM_API_KEY: platform } = testSettings;
const patienceMs = 10_000;

const small = '{"input":{"prompt":"a lighthouse"';
const held = `{"input":{"prompt":"${"a lighthouse ".repeat(4000)}"`;
const large = `{"input":{"prompt":"a lighthouse","image":"${"x".repeat(400_000)}"`;
const larger = `{"input":{"image":"${"x".repeat(1_200_000)}"`;
const said = '{"messages":[{"role":"user","content":"hello"}]';
const saidAtLength = `{"messages":[{"role":"user","content":"${"hello ".repeat(80_000)}"}]`;

/** What comes at once, of a body that states more; the bearer is the user's own where none is named. */
type Attack = readonly [name: string, path: string, text: string, statedBytes: number | undefined, key?: string];
const attacks: readonly Attack[] = [
  ["a run without a byte", run, "", 100],
  ["a run that stops", run, small, 100],
  ["a run that stops beyond what is read at once", run, held, 200_000],
  ["a chunked run", run, small, undefined],
  ["a large run", run, large, 1_000_000],
  ["a large chunked run", run, large, undefined],
  ["a runsync", `/v2/${model}/runsync`, small, 100],
  ["a large runsync", `/v2/${model}/runsync`, large, 19_000_000],
  ["a session", "/sessions", "{", 10],
  ["a token", "/tokens", "{", undefined, app],
  ["a budget", "/admin/budget", "{", 10, admin],
  ["a plan", "/admin/plans/tight", "{", undefined, admin],
  ["a switch of a model", `/admin/models/${model}`, "{", 10, admin],
  ["a call of the management interface", "/v1/templates", "{", 10, admin],
  ["a run at the platform", "/platform/v2/echo/run", small, 100, platform],
  ["a large run at the platform", "/platform/v2/echo/run", larger, 2_000_000, platform],
  ["a template at the platform", "/platform/v1/templates", "{", undefined, platform],
];
const named = attacks.map(([name, ...attack]) => ({ name, attack }));
const methods: Readonly<Record<string, string>> = { "/admin/budget": "PUT", "/admin/plans/tight": "PUT" };
const methodOf = (path: string) => methods[path] ?? (path.startsWith("/admin/models") ? "PUT" : "POST");

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => void vi.useRealTimers());

/** What comes at once; then each turn brings what it brings, or the end. */
function flowing(text: string, turn: (n: number) => Promise<Uint8Array | undefined>): ReadableStream {
  const begun = new TextEncoder().encode(text);
  let turns = 0;
  return new ReadableStream({
    type: "bytes",
    start: (controller) => void (begun.byteLength > 0 && controller.enqueue(begun)),
    async pull(controller) {
      const next = await turn(turns++);
      if (next) controller.enqueue(next);
      else controller.close();
    },
  });
}

/** Comes to a stop behind what came; all its patience passes. */
function stalled(text: string): ReadableStream {
  return flowing(text, async () => {
    await vi.advanceTimersByTimeAsync(patienceMs);
    return new Promise(() => {});
  });
}

const upstreamOf = () =>
  new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }), { ENDPOINTS: "echo", MANAGEMENT_URL: "" });

function send(upstream: FakeUpstream, path: string, body: ReadableStream, length?: number, key?: string) {
  const headers = length === undefined ? {} : { "Content-Length": String(length) };
  return upstream.call(methodOf(path), path, { body, headers, ...(key !== undefined && { key }) });
}

describe("a body that sends nothing for ten seconds", () => {
  it.each(named)("$name ends with 408", async ({ attack: [path, text, length, key] }) => {
    const upstream = upstreamOf();
    if (path.startsWith("/v1")) Object.assign(upstream.env, { MANAGEMENT_URL: "https://management.example.com/v1" });
    const response = await send(upstream, path, stalled(text), length, key);
    expect([response.status, (await response.json<{ code: string }>()).code]).toEqual([408, "REQUEST_TIMEOUT"]);
    expect(upstream.seen).toEqual([]);
    expect(await upstream.jobs()).toEqual([]);
  });

  it.each([
    ["small", said, 200],
    ["large", saidAtLength, 900_000],
  ])("under openai/ a %s one ends in OpenAI's shape", async (_name, text, length) => {
    const upstream = upstreamOf();
    const response = await send(upstream, chat, stalled(text), length);
    expect(response.status).toBe(408);
    expect(await response.json()).toMatchObject({ error: { code: "REQUEST_TIMEOUT", type: "invalid_request_error" } });
    expect(await upstream.jobs()).toEqual([]);
  });

  it("leaves its idempotency key free", async () => {
    const upstream = upstreamOf();
    const headers = { "Idempotency-Key": "one" };
    const slow = await upstream.call("POST", run, { body: stalled(large), headers });
    await expectProblem(slow, "REQUEST_TIMEOUT");
    const again = await upstream.call("POST", run, { body: chunked(`${large}}}`), headers });
    expect(again.status).toBe(200);
  });
});

describe("a body that drips", () => {
  const drip = (text: string, bytes: number, everyMs: number, turns: number) => {
    const seen = { turns: 0 };
    const body = flowing(text, async (n) => {
      seen.turns = n;
      await vi.advanceTimersByTimeAsync(everyMs);
      return n < turns ? new Uint8Array(bytes).fill(0x20) : undefined;
    });
    return { body, seen };
  };

  it.each([
    ["a byte a second", 1, 1_000],
    ["a byte each nine seconds", 1, 9_000],
    ["half a kilobyte a second", 512, 1_000],
  ])("%s ends with 408, however much came before", async (_name, bytes, everyMs) => {
    for (const text of [small, large]) {
      const upstream = upstreamOf();
      const { body, seen } = drip(text, bytes, everyMs, 1_000);
      await expectProblem(await send(upstream, run, body), "REQUEST_TIMEOUT");
      expect(seen.turns * everyMs).toBeLessThanOrEqual(2 * patienceMs + everyMs);
      expect(await upstream.jobs()).toEqual([]);
    }
  });

  it.each([
    ["two kilobytes a second", 2048, 1_000],
    ["ten kilobytes each nine seconds", 10_240, 9_000],
  ])("%s is slow, and taken", async (_name, bytes, everyMs) => {
    for (const text of [small, large]) {
      const upstream = upstreamOf();
      const { body } = drip(`${text}}}`, bytes, everyMs, 20);
      expect((await send(upstream, run, body)).status).toBe(200);
    }
  });
});

it("a body that waits for the model service is not slow", async () => {
  const upstream = upstreamOf();
  upstream.answer = async () => {
    await vi.advanceTimersByTimeAsync(patienceMs / 2);
    return json({ id: "job-1", status: "IN_QUEUE" });
  };
  expect((await send(upstream, run, chunked(`${large}}}`))).status).toBe(200);
});
