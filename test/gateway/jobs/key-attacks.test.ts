// The attacks on the upstream's key that once worked: an upstream says it in some spelling, and it came out somewhere.
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { takeFound } from "../../support/canary.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, logged, model, upstreamKey, watchCanary } from "./fake-upstream.ts";

watchCanary();

const hex = (character: string) => character.charCodeAt(0).toString(16).padStart(2, "0");
const unicode = (text: string) => Array.from(text, (character) => `\\u00${hex(character)}`).join("");
const percent = (text: string) => Array.from(text, (character) => `%${hex(character)}`).join("");
/** As they stand between the quotes of a JSON string. */
const spellings: readonly (readonly [string, string])[] = [
  ["plain", upstreamKey],
  ["in escapes", unicode(upstreamKey)],
  ["with one escaped letter", upstreamKey.replace("y", "\\u0079")],
  ["escaped twice", unicode(upstreamKey).replaceAll("\\", "\\\\")],
  ["in percents", percent(upstreamKey)],
  ["in base64", btoa(upstreamKey)],
  ["in base64 behind one byte", btoa(`:${upstreamKey}`)],
  ["in base64 behind two bytes", btoa(`u:${upstreamKey}:`)],
  ["in URL-safe base64 behind a name", btoa(`Basic user:${upstreamKey}`).replaceAll("=", "")],
];
const film = "x".repeat(300_000);
const said = (text: string, type = "application/json") => new Response(text, { headers: { "Content-Type": type } });
const jobOf = (debug: string, more = "") =>
  `{"id":"job-1","status":"COMPLETED","output":{"cost":0.002${more}},"debug":"${debug}"}`;

/** None of it, in any spelling that it was said in. */
function expectNothingOf(text: string, spelled: string): void {
  expect(text).not.toContain(spelled.slice(0, 24));
  expect(text).not.toContain(upstreamKey);
}

describe.each(spellings)("attack H2: a key %s", (_name, spelled) => {
  it("comes out of no small answer, and no error", async () => {
    const upstream = new FakeUpstream(() => said(jobOf(spelled)));
    const job = await upstream.job();
    for (const path of [`status/${job}`, `stream/${job}`, `health`]) {
      const response = await upstream.call("GET", `/v2/${model}/${path}`);
      expect(await response.json()).toMatchObject({ code: "UPSTREAM_BAD_ANSWER" });
    }
    upstream.answer = () =>
      new Response(`{"error":"no: ${spelled}"}`, { status: 400, headers: { "Content-Type": "application/json" } });
    expectNothingOf(await (await upstream.submit()).text(), spelled);
    expect(logged()).toContain("answered with our key");
  });

  it("is cut off in front of it in a large answer", async () => {
    const upstream = new FakeUpstream(() => said(jobOf(spelled, `,"film":"${film}"`)));
    const text = await (await upstream.submit("runsync")).text();
    expect(text).toMatch(/^cut: /);
    const job = await upstream.job();
    upstream.answer = () => said(`{"status":"IN_PROGRESS","stream":[{"output":"${film}"},{"output":"${spelled}"}]}`);
    const streamed = await (await upstream.call("GET", `/v2/${model}/stream/${job}`)).text();
    expect(streamed).toMatch(/^cut: /);
  });

  it("ends a stream of OpenAI's events", async () => {
    const upstream = new FakeUpstream(() =>
      said(`data: {"error":"${spelled}"}\n\ndata: [DONE]\n\n`, "text/event-stream"),
    );
    const text = await chat(upstream);
    expect(text).toMatch(/^cut: /);
    expect(logged()).toContain("answered with our key");
  });

  it("reaches no operator through the management relay", async () => {
    const upstream = new FakeUpstream(() => said(`[{"env":"${spelled}"}]`), {
      MANAGEMENT_URL: "https://m.example.com/v1",
    });
    const response = await upstream.call("GET", "/v1/pods", { key: testSettings.ADMIN_TOKEN });
    expect(await response.json()).toMatchObject({ code: "UPSTREAM_BAD_ANSWER" });
  });
});

const textModel = "qwen3-32b-awq";
const chatBody = { model: "m", stream: true, max_tokens: 10, messages: [{ role: "user", content: "x" }] };

async function chat(upstream: FakeUpstream, headers: Record<string, string> = {}): Promise<string> {
  const init = { body: chatBody, headers };
  return (await upstream.call("POST", `/v2/${textModel}/openai/v1/chat/completions`, init)).text();
}

describe("a stream of OpenAI's events that says the key", () => {
  const event = `data: {"choices":[{"delta":{"content":"a word"}}]}\n\n`;

  it("after them is ended, logged, and kept for no later call", async () => {
    const text = `${event.repeat(600)}data: {"error":"${upstreamKey}"}\n\n${event.repeat(600)}`;
    const upstream = new FakeUpstream(
      () => new Response(unendingPieces(text, 3000), { headers: { "Content-Type": "text/event-stream" } }),
    );
    expect((await read(upstream, { "Idempotency-Key": "k1" })).broke).toBe(true);
    // How much left before it was found depends on the machine; docs/security.md says so.
    expect(takeFound().filter((where) => !where.startsWith("a body of POST"))).toEqual([]);
    expect(logged()).toContain("answered with our key");
    await vi.waitFor(async () => expect((await env.IMAGES.list({ prefix: "answer/" })).keys.length).toBe(1));
    for (const { name } of (await env.IMAGES.list()).keys)
      expectNothingOf((await env.IMAGES.get(name)) ?? "", upstreamKey);
  });

  it("is untouched where it does not, however it comes", async () => {
    const text = event.repeat(700);
    for (const size of [1_000, 17, text.length]) {
      const upstream = new FakeUpstream(
        () => new Response(pieces(text, size), { headers: { "Content-Type": "text/event-stream" } }),
      );
      const answer = await read(upstream);
      expect([answer.broke, answer.text.length]).toEqual([false, text.length]);
      expect(answer.text === text).toBe(true);
    }
  });

  /** The client's side of the stream, also of one that breaks. */
  async function read(upstream: FakeUpstream, headers: Record<string, string> = {}) {
    const text = await chat(upstream, headers);
    return { text: text.replace(/^cut: .*/s, ""), broke: text.startsWith("cut: ") };
  }
});

function pieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (at >= bytes.length) {
        controller.close();
        controller.byobRequest?.respond(0);
        return;
      }
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

/** It goes on until it is cancelled, as one that comes from the network does. */
function unendingPieces(text: string, size: number): ReadableStream<Uint8Array> {
  const { readable, writable } = new IdentityTransformStream();
  pieces(text, size)
    .pipeTo(writable, { preventClose: true })
    .catch(() => {});
  return readable;
}

it("attack H1: a notice that says the key is believed in nothing, and told to nobody", async () => {
  const told: string[] = [];
  const upstream = new FakeUpstream(
    ({ path, body, url }) => {
      if (new URL(url).hostname === "hooks.example.com") {
        told.push(body);
        return new Response();
      }
      return path.endsWith("/run") ? json({ id: "job-1", status: "IN_QUEUE" }) : said(jobOf(upstreamKey));
    },
    { PUBLIC_URL: "https://gateway.example.com" },
  );
  await upstream.submit("run", { input: { prompt: "x", seed: 5 }, webhook: "https://hooks.example.com/h" });
  const { webhook } = JSON.parse(upstream.seen[0]?.body ?? "{}") as { webhook: string };
  const path = new URL(webhook).pathname;
  for (const [, spelled] of spellings) {
    expect((await upstream.call("POST", path, { body: jobOf(spelled), key: "none" })).status).toBe(400);
  }
  expect((await upstream.call("POST", path, { body: jobOf("nothing"), key: "none" })).status).toBe(200);
  expect(told).toEqual([]);
  for (const { name } of (await env.IMAGES.list()).keys) expect(await env.IMAGES.get(name)).not.toContain(upstreamKey);
});

describe("while keys are changed", () => {
  const old = "canary-old-key-of-the-upstream-987654321";
  const rotating = { UPSTREAM_API_KEY: `${upstreamKey},${old}` };
  const bearer = (request: Request) => request.headers.get("Authorization")?.slice("Bearer ".length);

  it("a job is submitted with the new one alone, and asked about with either", async () => {
    const upstream = new FakeUpstream((_seen, request) => {
      return bearer(request) === old ? json({ id: "job-1", status: "IN_PROGRESS" }) : json({ error: "no" }, 401);
    }, rotating);
    expect(await (await upstream.submit()).json()).toMatchObject({ code: "UPSTREAM_REFUSED" });
    expect(upstream.seen.map(({ headers }) => headers.get("Authorization"))).toEqual([`Bearer ${upstreamKey}`]);
    const job = await upstream.job();
    const polled = await upstream.call("GET", `/v2/${model}/status/${job}`);
    expect(await polled.json()).toMatchObject({ id: job, status: "IN_PROGRESS" });
    expect(upstream.seen.map(({ headers }) => headers.get("Authorization"))).toEqual([
      `Bearer ${upstreamKey}`,
      `Bearer ${old}`,
    ]);
  });

  it.each([upstreamKey, old])("neither comes out", async (key) => {
    const upstream = new FakeUpstream(() => said(jobOf(unicode(key))), rotating);
    expect(await (await upstream.submit("runsync")).json()).toMatchObject({ code: "UPSTREAM_BAD_ANSWER" });
  });
});

it("attack H3: a large answer says nothing back of its request, and its output keeps what it has", async () => {
  const echo = `"webhook":"https://gateway.example.com/hooks/x","input":{"prompt":"${film}"}`;
  const upstream = new FakeUpstream(() =>
    said(`{${echo},"id":"job-1","status":"COMPLETED","output":{"input":1,"film":"${film}"}}`),
  );
  const text = await (await upstream.submit("runsync")).text();
  expect(Object.keys(JSON.parse(text) as object)).toEqual(["id", "status", "output"]);
  expect(text).toContain('"output":{"input":1,');
});

it("attack L3: a webhook under a name in another case takes no place of ours, in a small body or a large one", async () => {
  for (const name of ["Webhook", "WEBHOOK", "webHoo\\u004B", "webhoo\u212a"]) {
    for (const size of [10, 300_000]) {
      const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }), {
        PUBLIC_URL: "https://gateway.example.com",
      });
      const body = `{"input":{"prompt":"x","unknown":"${"y".repeat(size)}"},"${name}":"https://evil.example.com/"}`;
      await upstream.submit("run", body);
      const sent = JSON.parse(upstream.seen[0]?.body ?? "{}") as Record<string, unknown>;
      const webhooks = Object.entries(sent).filter(([key]) => key.toLowerCase() === "webhook");
      expect(webhooks).toEqual([["webhook", expect.stringMatching(/^https:\/\/gateway\.example\.com\/hooks\//)]]);
    }
  }
});
