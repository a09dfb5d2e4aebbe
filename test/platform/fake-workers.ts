// Workers of a load-balancing endpoint, as far as the platform can tell: reached by URL, each answering what a test wants.

import { createExecutionContext } from "cloudflare:test";
import { vi } from "vitest";
import { app } from "../../src/app.ts";
import { isolate } from "../support/callers.ts";
import { origin, type Settings } from "../support/front-door.ts";
import { testSettings } from "../support/settings.ts";

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string;
}
type Answer = (asked: Asked, request: Request) => Response | Promise<Response>;

let count = 0;

export class FakeWorkers {
  /** Requests in order, pings not among them. */
  readonly asked: Asked[] = [];
  readonly pings: string[] = [];
  readonly name = `balanced-${++count}`;
  readonly urls: readonly string[];
  /** What each answers to a ping, by its URL; no answer where none stands. */
  readonly health = new Map<string, number>();
  answer: Answer;
  /** One isolate's, as long as it lives. */
  readonly env: Env;

  constructor(workers: number, answer: Answer = () => text("hello")) {
    this.urls = Array.from({ length: workers }, (_, n) => `http://w${n}.${this.name}:8000`);
    for (const url of this.urls) this.health.set(url, 200);
    this.answer = answer;
    this.env = isolate(this.settings);
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => this.#take(new Request(input, init)));
  }

  async #take(request: Request): Promise<Response> {
    const { origin, pathname } = new URL(request.url);
    if (pathname === "/ping") {
      this.pings.push(origin);
      const status = this.health.get(origin);
      if (status === undefined) throw new TypeError("nobody listens there");
      return new Response(null, { status });
    }
    const { method, url, headers } = request;
    const asked = { method, url, headers, body: await request.clone().text() };
    this.asked.push(asked);
    return this.answer(asked, request);
  }

  get settings(): Settings {
    return { ENDPOINTS: `${this.name}=${this.urls.join("|")}` };
  }

  async call(method: string, path: string, sent: { headers?: Record<string, string>; body?: BodyInit } = {}) {
    const headers = { Authorization: `Bearer ${testSettings.PLATFORM_API_KEY}`, ...sent.headers };
    const request = new Request(`${origin}/platform/lb/${this.name}${path}`, {
      method,
      redirect: "manual",
      ...sent,
      headers,
    });
    return app.fetch(request, this.env, createExecutionContext());
  }
}

/** With its length, as servers answer. */
export function text(said: string, headers: Record<string, string> = {}, status = 200): Response {
  const length = String(new TextEncoder().encode(said).byteLength);
  return new Response(said, {
    status,
    headers: { "Content-Length": length, "Content-Type": "text/plain", ...headers },
  });
}

/** Pieces that come when a test says so. */
export function flowing() {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  return { readable, write: (said: string) => writer.write(new TextEncoder().encode(said)), writer };
}
