// A gateway before a model service of the test's own: jobs end when the test says so, and every call is counted.
import { waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { app } from "../../../src/app.ts";
import { type Remote, remote } from "../../../src/durable/remote.ts";
import type { UserMeter } from "../../../src/index.ts";
import { type CacheInFront, contextWith } from "../../support/cache-in-front.ts";
import { isolate } from "../../support/callers.ts";
import { testSettings } from "../../support/settings.ts";

export const model = "black-forest-labs-flux-1-schnell";
export const origin = "https://sluice.test";
const upstreamUrl = "https://models.example.com";
export const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Array<number>(120).fill(7)]);

export interface Answer {
  readonly status: string;
  readonly output?: unknown;
  readonly error?: string;
  readonly delayTime?: number;
  readonly executionTime?: number;
}

export function painted(url: string, more: Partial<Answer> = {}): Answer {
  return { status: "COMPLETED", output: { image_url: url, cost: 0.0025 }, ...more };
}

type Ask = { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal; untouched?: boolean };

/** What the outside world answers: the service's jobs by id, and any other address by a handler. */
export class World {
  readonly calls: string[] = [];
  /** Each submitted job waits for this. */
  gate: Promise<void> = Promise.resolve();
  submitted: (n: number) => Answer = () => painted("https://cdn.example.net/a.png");
  elsewhere: (request: Request) => Response | Promise<Response> = () => picture(png);
  refuse: Response | undefined;
  /** How the service writes a job; its members in the order that a test wants. */
  written: (id: string, job: Answer) => string = (id, job) => JSON.stringify({ id, ...job });
  /** Where the last job's end is to be told. */
  webhook = "";
  readonly #jobs = new Map<string, Answer>();

  constructor() {
    vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => this.#answer(new Request(input, init)));
  }

  count(operation: string): number {
    return this.calls.filter((call) => call.includes(operation)).length;
  }

  async #answer(request: Request): Promise<Response> {
    const { origin: host, pathname } = new URL(request.url);
    if (host !== upstreamUrl) {
      this.calls.push(`GET ${request.url}`);
      return this.elsewhere(request);
    }
    const [, , , operation = "", id = ""] = pathname.split("/");
    this.calls.push(`${request.method} /${operation}`);
    if (operation === "run" || operation === "runsync") return this.#submit(operation, request);
    if (operation === "retry") this.#jobs.set(id, { status: "IN_QUEUE" });
    else if (operation === "cancel") this.#jobs.set(id, { status: "CANCELLED" });
    else if (operation === "status-sync") await this.gate;
    const job = this.#jobs.get(id);
    return job ? this.#write(id, job) : Response.json({ error: "job not found" }, { status: 404 });
  }

  becomes(id: string, job: Answer): void {
    this.#jobs.set(id, job);
  }

  forgets(id: string): void {
    this.#jobs.delete(id);
  }

  async #submit(operation: "run" | "runsync", request: Request): Promise<Response> {
    const { webhook } = await request.json<{ webhook?: string }>();
    this.webhook = webhook ?? "";
    if (this.refuse) return this.refuse;
    const id = `job-${this.#jobs.size + 1}`;
    const job = this.submitted(this.#jobs.size + 1);
    this.#jobs.set(id, job);
    return operation === "run" ? Response.json({ id, status: "IN_QUEUE" }) : this.#write(id, job);
  }

  #write(id: string, job: Answer): Response {
    return new Response(this.written(id, job), { headers: { "Content-Type": "application/json" } });
  }
}

/** One isolate: what it remembers it remembers alone. */
export class Studio {
  readonly env: Env;
  cache: CacheInFront | undefined;

  constructor(settings: Partial<Record<keyof Env, unknown>> = {}) {
    this.env = isolate({ UPSTREAM_URL: upstreamUrl, UPSTREAM_API_KEY: "key-of-the-service-0123456789", ...settings });
  }

  async ask(path: string, token: string | undefined, method = "GET", { body, headers, signal, untouched }: Ask = {}) {
    const request = new Request(origin + path, {
      method,
      headers: { ...headers, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    const ctx = contextWith(this.cache);
    const response = await app.fetch(request, this.env, ctx);
    if (untouched || response.body === null) return response;
    // What is done beside the answer may need its body to be read.
    const whole = new Response(await response.arrayBuffer(), response);
    await waitOnExecutionContext(ctx);
    return whole;
  }

  async token(user: string, plan = "unlimited"): Promise<string> {
    const response = await this.ask("/tokens", testSettings.APP_SECRET, "POST", { body: { user, plan } });
    return (await response.json<{ token: string }>()).token;
  }

  paint(token: string, { input = {}, operation = "runsync", ...more }: Ask & Painting = {}): Promise<Response> {
    const body = { input: { prompt: "a lighthouse", seed: 7, width: 256, height: 256, ...input } };
    return this.ask(`/v2/${model}/${operation}`, token, "POST", { body, ...more });
  }

  /** The link's path, and when the answer says that it ends. */
  async link(token: string, painting: Ask & Painting = {}): Promise<{ path: string; expiresAt: string; id: string }> {
    const response = await this.paint(token, painting);
    const { id, output } = await response.json<{ id: string; output: { image_url: string; expires_at: string } }>();
    return { id, path: output.image_url.replace(origin, ""), expiresAt: output.expires_at };
  }
}

interface Painting {
  input?: Record<string, unknown>;
  operation?: "run" | "runsync";
}

export function picture(bytes: Uint8Array, type = "image/png", headers: Record<string, string> = {}): Response {
  return new Response(bytes, { headers: { "Content-Type": type, "Content-Length": String(bytes.length), ...headers } });
}

export function meterOf(user: string): Remote<UserMeter> {
  return remote<UserMeter>(env.USER_METER, `user:${user}`);
}

/** What the payer's jobs cost so far, and how many there were. */
export async function charged(user: string): Promise<{ microUsd: number; jobs: number; open: number }> {
  const { jobs } = await meterOf(user).jobs(`user:${user}`, undefined, 0, 1000);
  const microUsd = jobs.reduce((sum, job) => sum + (job.costMicroUsd ?? 0), 0);
  return { microUsd, jobs: jobs.length, open: jobs.filter((job) => job.endedAt === null).length };
}

/** The keys that KV holds, each with the moment that it lets go of it. */
export async function kept(prefix: string): Promise<{ name: string; expiresAt: number }[]> {
  const { keys } = await env.IMAGES.list({ prefix });
  return keys.map(({ name, expiration = 0 }) => ({ name, expiresAt: expiration * 1000 }));
}

/** A world whose models make nothing before they are let. */
export function gatedWorld(): { readonly world: World; readonly land: () => void } {
  const world = new World();
  const gate = Promise.withResolvers<void>();
  world.gate = gate.promise;
  return { world, land: gate.resolve };
}

type Call = (...words: unknown[]) => Promise<unknown>;
/** By method: what becomes of a call, which it may make. */
export type Detours = Record<string, (call: () => Promise<unknown>, object: string) => unknown>;

/** A binding whose objects are reached by a detour. */
export function detoured<Name extends "JOB_MEDIA" | "SHARED_REQUEST">(binding: Name, detours: Detours) {
  const getByName = (name: string) =>
    new Proxy(env[binding].getByName(name), {
      get: (object, method) => {
        const detour = detours[String(method)];
        const call = (...words: unknown[]) => (Reflect.get(object, method) as Call)(...words);
        return detour ? (...words: unknown[]) => detour(() => call(...words), name) : call;
      },
    });
  return { [binding]: { getByName } };
}

export const hang = (): Promise<never> => new Promise(() => {});

/** Lets timers ring until there is an answer. */
export async function whileTimePasses<T>(asked: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    let isOver = false;
    const answer = asked().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(500);
      await scheduler.wait(1);
    }
    return await answer;
  } finally {
    vi.useRealTimers();
  }
}
