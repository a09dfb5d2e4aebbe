// Answers that are too large to hold: streamed under the owner's handle, byte for byte but for the id, and settled after.
import { describe, expect, it } from "vitest";
import type { UpstreamJob } from "../../../src/gateway/upstream/upstream-answer.ts";
import { FakeUpstream, model, upstreamKey, watchCanary } from "./fake-upstream.ts";

watchCanary();

const film = "é😀x".repeat(60_000);
const handle = /^job-7\.[0-9a-z]{23}\.[0-9a-f]{32}$/;
const large = (change: object = {}) =>
  JSON.stringify({
    delayTime: 3,
    executionTime: 4,
    id: "job-7",
    status: "COMPLETED",
    output: { film, cost: 0.002 },
    ...change,
  });
const answered = (body: string) => () => new Response(body, { headers: { "Content-Type": "application/json" } });

describe("an answer above 256 KB", () => {
  it("of runsync comes under a handle, which opens, and is settled at its cost", async () => {
    const upstream = new FakeUpstream(answered(large()));
    const response = await upstream.submit("runsync");
    expect(response.status).toBe(200);
    const text = await response.text();
    const { id } = JSON.parse(text) as UpstreamJob;
    expect(id).toMatch(handle);
    expect(text === large({ id })).toBe(true);
    expect(await upstream.jobs()).toMatchObject([{ status: "COMPLETED", costUsd: 0.002 }]);
    upstream.answer = answered(large());
    expect((await (await upstream.call("GET", `/v2/${model}/status/${id}`)).json<UpstreamJob>()).id).toBe(id);
  });

  it("of status comes under the handle that was asked for, wherever its id stands", async () => {
    const upstream = new FakeUpstream(answered(`{"output":{"film":"${film}"},"status":"FAILED","\\u0069d":"job-7"}`));
    const id = await upstream.job("job-7");
    const job = await (await upstream.call("GET", `/v2/${model}/status/${id}`)).json<UpstreamJob>();
    expect(job).toMatchObject({ id, status: "FAILED" });
    expect(await upstream.jobs()).toMatchObject([{ status: "FAILED", costUsd: 0 }]);
  });

  it.each([
    ["breaks off", large().slice(0, -20)],
    ["is no JSON", large().replace('"status"', "status")],
    ["holds an id that is none", large({ id: "a/b" })],
    ["says our key", large({ output: { film, header: `Bearer ${upstreamKey}` } })],
  ])("that %s is cut, and settles nothing", async (_name, body) => {
    const upstream = new FakeUpstream(answered(body));
    const response = await upstream.submit("runsync");
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/^cut: /);
    expect(await upstream.jobs()).toMatchObject([{ status: "IN_QUEUE", costUsd: null }]);
  });

  it("of stream passes as it is", async () => {
    const body = JSON.stringify({ status: "IN_PROGRESS", stream: [{ output: film }] });
    const upstream = new FakeUpstream(answered(body));
    const id = await upstream.job("job-7");
    expect((await (await upstream.call("GET", `/v2/${model}/stream/${id}`)).text()) === body).toBe(true);
    const list = await upstream.call("GET", `/v2/${model}/stream/${id}?format=array`);
    expect(await list.json()).toEqual([{ output: film }]);
  });

  it("of stream is cut in front of our key", async () => {
    const upstream = new FakeUpstream(
      answered(JSON.stringify({ status: "IN_PROGRESS", stream: [{ output: film }, { output: upstreamKey }] })),
    );
    const id = await upstream.job("job-7");
    const text = await (await upstream.call("GET", `/v2/${model}/stream/${id}`)).text();
    expect(text).toMatch(/^cut: /);
    expect(text).not.toContain(upstreamKey.slice(0, 12));
  });
});
