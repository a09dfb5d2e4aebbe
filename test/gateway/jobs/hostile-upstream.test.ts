// An upstream that does its worst: every fault ends with the code that says which, and with nothing of the upstream's own text.
import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../../../src/errors.ts";
import { expectProblem } from "../../support/problems.ts";
import { FakeUpstream, json, logged, model, upstreamKey, watchCanary } from "./fake-upstream.ts";

watchCanary();

const secret = "said-by-the-upstream";
const page = `<html><body>${secret}</body></html>`;
const html = { "Content-Type": "text/html" };
const asJson = { "Content-Type": "application/json" };
const soon = { "Retry-After": "30" };

const said = (body: BodyInit | null, status = 200, headers: Record<string, string> = asJson) =>
  new Response(body, { status, headers });

/** Pieces, then the end or a break. */
function broken(...pieces: string[]): ReadableStream {
  const encoder = new TextEncoder();
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) controller.error(new Error("reset"));
      else controller.enqueue(encoder.encode(piece));
    },
  });
}

const deep = (levels: number) => `{"id":"a","status":"COMPLETED","output":${"[".repeat(levels)}${"]".repeat(levels)}}`;

type Fault = [name: string, answer: () => Response, code: ErrorCode];
const faults: Fault[] = [
  ["an HTML page as a 200", () => said(page, 200, html), "UPSTREAM_BAD_TYPE"],
  ["text that calls itself text", () => said(`{"id":"a","status":"IN_QUEUE"}`, 200, {}), "UPSTREAM_BAD_TYPE"],
  ["nothing at all", () => said(null, 200, {}), "UPSTREAM_BAD_TYPE"],
  ["204", () => said(null, 204), "UPSTREAM_BAD_JSON"],
  ["an empty body that calls itself JSON", () => said(""), "UPSTREAM_BAD_JSON"],
  ["half of a JSON text", () => said(`{"id":"a","status":"${secret}`), "UPSTREAM_BAD_JSON"],
  ["garbage", () => said(`${secret}\0\x01`), "UPSTREAM_BAD_JSON"],
  ["bytes that are no UTF-8", () => said(new Uint8Array([0x22, 0xff, 0x22])), "UPSTREAM_BAD_JSON"],
  ["two JSON texts", () => said(`{"id":"a","status":"IN_QUEUE"}{}`), "UPSTREAM_BAD_JSON"],
  ["an abyss of brackets", () => said(deep(100_000)), "UPSTREAM_BAD_JSON"],
  ["a body that breaks off", () => said(broken(`{"id":"a",`)), "UPSTREAM_TRUNCATED"],
  ["a body that breaks before it begins", () => said(broken()), "UPSTREAM_TRUNCATED"],
  ["null", () => json(null), "UPSTREAM_BAD_ANSWER"],
  ["a list", () => json([{ id: "a", status: secret }]), "UPSTREAM_BAD_ANSWER"],
  ["a number", () => json(42), "UPSTREAM_BAD_ANSWER"],
  ["no status", () => json({ id: "a", note: secret }), "UPSTREAM_BAD_ANSWER"],
  ["a status of the wrong type", () => json({ id: "a", status: { secret } }), "UPSTREAM_BAD_ANSWER"],
  ["an endless status", () => json({ id: "a", status: secret.repeat(9) }), "UPSTREAM_BAD_ANSWER"],
  ["an id of the wrong type", () => json({ id: 7, status: "IN_QUEUE" }), "UPSTREAM_BAD_ANSWER"],
  ["times of the wrong type", () => json({ id: "a", status: "IN_QUEUE", delayTime: secret }), "UPSTREAM_BAD_ANSWER"],
  ["our own key", () => json({ id: "a", status: "IN_QUEUE", output: upstreamKey }), "UPSTREAM_BAD_ANSWER"],
  ["our own key, escaped", () => said(deepKey()), "UPSTREAM_BAD_ANSWER"],
  ["a redirect to another host", () => said(page, 302, { Location: "https://evil.example.net/" }), "UPSTREAM_REDIRECT"],
  ["a permanent redirect", () => said(null, 308, { Location: "/elsewhere" }), "UPSTREAM_REDIRECT"],
  ["304", () => said(null, 304), "UPSTREAM_REDIRECT"],
  ["401", () => json({ error: secret }, 401), "UPSTREAM_REFUSED"],
  ["402", () => json({ error: secret }, 402), "UPSTREAM_REFUSED"],
  ["403", () => json({ error: secret }, 403), "UPSTREAM_REFUSED"],
  ["404 as a page", () => said(page, 404, html), "UPSTREAM_BAD_TYPE"],
  ["400 as a page", () => said(page, 400, html), "UPSTREAM_BAD_TYPE"],
  ["400 of garbage JSON", () => said(secret, 400), "UPSTREAM_BAD_JSON"],
  ["413 as a page", () => said(page, 413, html), "UPSTREAM_BAD_TYPE"],
  ["429 as a page", () => said(page, 429, { ...html, ...soon }), "UPSTREAM_BUSY"],
  ["503 as a page", () => said(page, 503, { ...html, ...soon }), "UPSTREAM_BUSY"],
  ["500 as a page", () => said(page, 500, html), "UPSTREAM_FAILED"],
  ["500 of garbage JSON", () => said(secret, 500), "UPSTREAM_FAILED"],
  ["an error text that holds our key", () => json({ error: `${secret} ${upstreamKey}` }, 400), "UPSTREAM_INVALID"],
  ["an error that is no text", () => json({ error: [secret] }, 400), "UPSTREAM_INVALID"],
  ["an error larger than any", () => json({ error: secret.repeat(10_000) }, 500), "UPSTREAM_FAILED"],
];

function deepKey(): string {
  const escaped = `\\u${upstreamKey.charCodeAt(0).toString(16).padStart(4, "0")}${upstreamKey.slice(1)}`;
  return `{"id":"a","status":"IN_QUEUE","output":"${escaped}"}`;
}

describe("an upstream that answers", () => {
  it.each(faults)("%s, to a submission and to a poll", async (_name, answer, code) => {
    const upstream = new FakeUpstream(answer);
    const job = await upstream.job();
    for (const response of [
      await upstream.submit("run"),
      await upstream.submit("runsync"),
      await upstream.call("GET", `/v2/${model}/status/${job}`),
    ]) {
      const body = await expectProblem(response, code);
      expect(JSON.stringify(body)).not.toContain(secret);
      expect(body["detail"]).not.toBe("");
    }
    expect(upstream.seen.every(({ url }) => url.startsWith(`${upstream.origin}/v2/`))).toBe(true);
    expect(logged()).not.toContain(secret);
  });

  it.each([
    ["stream/:job", "GET"],
    ["health", "GET"],
    ["events/:job", "GET"],
    ["openai/v1/models", "GET"],
    ["openai/v1/chat/completions", "POST"],
    ["cancel/:job", "POST"],
    ["retry/:job", "POST"],
  ])("what is no object, to %s", async (path, method) => {
    for (const value of [null, 42, "text", []]) {
      const upstream = new FakeUpstream(() => json(value));
      const job = await upstream.job();
      const body = path.includes("chat") ? { messages: [{ role: "user", content: "x" }] } : undefined;
      const url = `/v2/${path.startsWith("openai") ? "gpt-oss-120b" : model}/${path.replace(":job", job)}`;
      const response = await upstream.call(method, url, { body });
      const text = await response.text();
      expect([text, text.includes("UPSTREAM_BAD_ANSWER")]).toEqual([text, true]);
    }
  });
});

describe("what an upstream says well", () => {
  it.each([
    ["error", { error: "prompt is too long" }],
    ["detail", { detail: "prompt is too long" }],
    ["message", { message: "prompt is too long" }],
    ["OpenAI's error", { error: { message: "prompt is too long" } }],
  ])("is passed on from its %s", async (_name, body) => {
    const upstream = new FakeUpstream(() => json(body, 422));
    expect(await expectProblem(await upstream.submit(), "UPSTREAM_INVALID")).toMatchObject({
      detail: "prompt is too long",
    });
  });

  it("is not passed on where it quotes the address of the job's notices", async () => {
    const upstream = new FakeUpstream(({ body }) => json({ error: `Cannot take ${body}` }, 400), {
      PUBLIC_URL: "https://gateway.example.com",
    });
    const { detail } = await expectProblem(await upstream.submit(), "UPSTREAM_INVALID");
    expect(upstream.seen[0]?.body).toContain("/hooks/");
    expect(detail).toBe("The model service refused the request.");
  });

  it("is cut to a length that a person reads", async () => {
    const upstream = new FakeUpstream(() => json({ error: "x".repeat(5000) }, 400));
    const { detail } = await expectProblem(await upstream.submit(), "UPSTREAM_INVALID");
    expect(String(detail)).toHaveLength(500);
  });

  it("may have a byte order mark in front, and any JSON type", async () => {
    const text = `\ufeff{"id":"job-9","status":"IN_QUEUE"}`;
    const upstream = new FakeUpstream(() => said(text, 200, { "Content-Type": "application/problem+json" }));
    const { id } = await (await upstream.submit()).json<{ id: string }>();
    expect(id).toMatch(/^job-9\./);
  });

  it.each([
    ["missing", undefined],
    ["empty", ""],
    ["too long", "x".repeat(129)],
    ["with a dot", "a.b"],
    ["with a slash", "a/b"],
    ["with a line break", "a\r\nSet-Cookie: x"],
    ["of another script", "é"],
  ])("is not a job with an id that is %s", async (_name, id) => {
    const upstream = new FakeUpstream(() => json({ id, status: "IN_QUEUE" }));
    await expectProblem(await upstream.submit(), "UPSTREAM_BAD_ANSWER");
  });

  it("brings none of its headers along", async () => {
    const headers = { "Set-Cookie": "a=b", "X-Powered-By": secret, Server: secret, "Access-Control-Allow-Origin": "x" };
    const upstream = new FakeUpstream(() => json({ id: "a", status: "IN_QUEUE" }, 200, headers));
    const response = await upstream.submit();
    expect(response.headers.has("Set-Cookie")).toBe(false);
    expect(JSON.stringify([...response.headers])).not.toContain(secret);
  });

  it.each([
    ["seconds", () => "30", /^30$/],
    ["a date", () => new Date(Date.now() + 60_000).toUTCString(), /^[56]\d$/],
  ])("is passed on as a Retry-After of %s", async (_name, asked, told) => {
    const upstream = new FakeUpstream(() => json({ error: "slow down" }, 429, { "Retry-After": asked() }));
    const response = await upstream.submit();
    expect(response.headers.get("Retry-After")).toMatch(told);
    await expectProblem(response, "UPSTREAM_BUSY");
    expect(upstream.seen).toHaveLength(1);
  });
});
