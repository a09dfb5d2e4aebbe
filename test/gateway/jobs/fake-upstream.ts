// A real upstream, as far as the gateway can tell: it is reached by URL, and answers what the test wants. The canary sings here.
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { app } from "../../../src/app.ts";
import type { UpstreamJob } from "../../../src/gateway/upstream/upstream-answer.ts";
import { isolate, send } from "../../support/callers.ts";
import { upstreamKey } from "../../support/canary.ts";
import { fromTheNetwork } from "../../support/front-door.ts";
import { testSettings } from "../../support/settings.ts";

export { upstreamKey };

export const model = "black-forest-labs-flux-1-schnell";
export const prompt = { input: { prompt: "a lighthouse" } };

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}
type Answer = (seen: Seen, request: Request) => Response | Promise<Response>;

const said: string[] = [];
let count = 0;

/** Every test file of the relay calls it once: what is logged, thrown or answered in its tests is searched for the key. */
export function watchCanary(): void {
  beforeEach(() => {
    for (const level of ["log", "info", "warn", "error", "debug"] as const) {
      vi.spyOn(console, level).mockImplementation((...words: unknown[]) => void said.push(words.map(String).join(" ")));
    }
  });
  afterEach(() => {
    vi.restoreAllMocks();
    const found = said.splice(0).filter((text) => text.includes(upstreamKey));
    expect(found, "the upstream's key came out").toEqual([]);
  });
}

export function logged(): string {
  return said.join("\n");
}

interface UsedJob {
  readonly model: string;
  readonly status: string;
  readonly reservedUsd: number;
  readonly costUsd: number | null;
}

interface Init {
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

const isBody = (body: unknown): body is string | Uint8Array | ReadableStream =>
  typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;

export class FakeUpstream {
  /** What it was asked, in order. */
  readonly seen: Seen[] = [];
  readonly env: Env;
  readonly origin: string;
  answer: Answer;
  readonly #tokens = new Map<string, string>();

  constructor(answer: Answer, settings: Parameters<typeof isolate>[0] = {}) {
    this.answer = answer;
    // Its own host: another test's circuit breaker is not this one's.
    this.origin = `https://u${++count}.upstream.example.com`;
    this.env = isolate({ UPSTREAM_URL: this.origin, UPSTREAM_API_KEY: upstreamKey, ...settings });
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => this.#take(new Request(input, init)));
  }

  async #take(request: Request): Promise<Response> {
    const { method, url, headers } = request;
    const body = await request.clone().text();
    const path = new URL(url).pathname;
    const seen = { method, url, path, headers, body };
    this.seen.push(seen);
    return this.answer(seen, request);
  }

  /** Through the front door; the answer has been read whole, and is handed back as if it had not. */
  async call(method: string, path: string, init: Init = {}): Promise<Response> {
    const { key = await this.token(), headers = {}, body: sent, signal } = init;
    const request = new Request(`https://gateway.example.com${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...headers },
      cf: fromTheNetwork,
      ...(sent !== undefined && { body: isBody(sent) ? sent : JSON.stringify(sent) }),
      ...(signal && { signal }),
    });
    const ctx = createExecutionContext();
    const response = await app.fetch(request, this.env, ctx);
    // Read first: what goes on beside an answer that streams waits for its reader.
    const body = await response.text().catch((error: unknown) => `cut: ${String(error)}`);
    await waitOnExecutionContext(ctx);
    said.push(body, JSON.stringify([...response.headers]));
    const empty = [101, 204, 205, 304].includes(response.status);
    return new Response(empty ? null : body, { status: response.status, headers: response.headers });
  }

  async submit(operation = "run", body: unknown = prompt, headers: Record<string, string> = {}): Promise<Response> {
    return this.call("POST", `/v2/${model}/${operation}`, { body, headers });
  }

  /** The handle of a job that the upstream calls so. */
  async job(ref = "job-1"): Promise<string> {
    const { answer } = this;
    this.answer = () => json({ id: ref, status: "IN_QUEUE" });
    const { id } = await (await this.submit()).json<UpstreamJob>();
    this.answer = answer;
    this.seen.length = 0;
    return String(id);
  }

  /** A user's jobs as the meter has them, newest first. */
  async jobs(user?: string): Promise<UsedJob[]> {
    const response = await this.call("GET", "/usage", user === undefined ? {} : { key: await this.token(user) });
    return (await response.json<{ jobs: UsedJob[] }>()).jobs;
  }

  async token(user = `user-${this.origin}`): Promise<string> {
    const known = this.#tokens.get(user) ?? (await mintToken(this.env, { user, plan: "unlimited" }));
    this.#tokens.set(user, known);
    return known;
  }
}

/** A caller that reads the first piece of an answer, and goes. */
export async function leavingCaller(
  upstream: FakeUpstream,
  path: string,
  body: object,
  headers: Record<string, string> = {},
) {
  const leaving = new AbortController();
  const ctx = createExecutionContext();
  const request = new Request(`https://gateway.example.com${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${await upstream.token()}`, ...headers },
    body: JSON.stringify(body),
    signal: leaving.signal,
  });
  const response = await app.fetch(request, upstream.env, ctx);
  const reader = response.body?.getReader();
  return {
    read: async () => new TextDecoder().decode((await reader?.read())?.value),
    /** Answers when all that goes on without the caller is over. */
    leave: async () => {
      leaving.abort();
      await reader?.cancel("gone").catch(() => {});
      await waitOnExecutionContext(ctx);
    },
  };
}

export async function mintToken(within: Env, request: object): Promise<string> {
  const response = await send(within, "POST", "/tokens", { key: testSettings.APP_SECRET, body: request });
  return (await response.json<{ token: string }>()).token;
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return Response.json(value, { status, headers });
}

/** A body without a stated length. */
export function chunked(text: string): ReadableStream {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (at >= bytes.byteLength) return controller.close();
      controller.enqueue(bytes.slice(at, at + 70_000));
      at += 70_000;
    },
  });
}
