// A body's own fault is told, whatever the upstream made of the upload that it cut off: here the embedded platform's own words.
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { app } from "../../../src/app.ts";
import { isolate, send } from "../../support/callers.ts";
import { expectProblem } from "../../support/problems.ts";
import { chunked, FakeUpstream, json, mintToken, model, watchCanary } from "./fake-upstream.ts";

watchCanary();

const filler = "x".repeat(400 * 1024);
const large = `{"input":{"prompt":"a lighthouse","image":"${filler}"}}`;
const beyond = `{"input":{"prompt":"a lighthouse","image":"${"x".repeat(11 * 1024 * 1024)}"}}`;

const faults = [
  ["that is longer than its limit", beyond, "PAYLOAD_TOO_LARGE"],
  ["with junk after its end", `${large}}`, "INVALID_JSON"],
  ["without an input", `{"image":"${filler}"}`, "INVALID_REQUEST"],
  ["whose prompt is none", `{"input":{"prompt":7,"image":"${filler}"}}`, "INVALID_REQUEST"],
] as const;

describe("a chunked body", () => {
  it.each(faults)("%s is told so by the gateway in front of the embedded platform", async (_name, text, code) => {
    const within = isolate();
    const token = await mintToken(within, { user: "large", plan: "unlimited" });
    const request = new Request(`https://gateway.example.com/v2/${model}/run`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}` },
      body: chunked(text),
    });
    const ctx = createExecutionContext();
    await expectProblem(await app.fetch(request, within, ctx), code);
    await waitOnExecutionContext(ctx);
    const { jobs } = await (await send(within, "GET", "/usage", { key: token })).json<{ jobs: object[] }>();
    expect(jobs).toEqual([]);
  });

  it.each(faults)("%s is told so where the upstream refuses what it got of it", async (_name, text, code) => {
    const upstream = new FakeUpstream(() => json({ error: "body: broke off" }, 400));
    await expectProblem(await upstream.submit("run", chunked(text)), code);
    expect(await upstream.jobs()).toEqual([]);
  });

  it.each([400, 413, 429, 500])("without a fault gets the upstream's own answer: %i", async (status) => {
    const upstream = new FakeUpstream(() => json({ error: "its own words" }, status, { "Retry-After": "60" }));
    const response = await upstream.submit("run", chunked(large));
    expect(await response.json()).toMatchObject({ detail: "its own words" });
  });
});
