// A gateway as the client sees it: each call is answered by what the test says, and kept to be looked at.
import type { Fetch } from "../../src/client/call.ts";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
}

type Answer = Response | Error | undefined;
export type Route = (seen: Seen, signal: AbortSignal | undefined) => Answer | Promise<Answer>;

/** The first route that answers does; an Error is a connection that broke. */
export class FakeGateway {
  readonly url = "https://gateway.test";
  readonly seen: Seen[] = [];
  readonly #routes: [RegExp, Route][] = [];

  /** `POST /v2/painter/run`; later routes go before earlier ones. */
  on(pattern: RegExp, route: Route): this {
    this.#routes.unshift([pattern, route]);
    return this;
  }

  calls(pattern: RegExp): Seen[] {
    return this.seen.filter(({ method, path }) => pattern.test(`${method} ${path}`));
  }

  readonly fetch: Fetch = async (url, { method = "GET", headers, body, signal }) => {
    const path = url.replace(this.url, "");
    const text = typeof body === "string" ? JSON.parse(body) : body;
    const seen = { method, path, headers: new Headers(headers), body: text };
    this.seen.push(seen);
    const answer = this.#answer(seen, signal ?? undefined);
    const left = new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      if (signal?.aborted) reject(signal.reason);
    });
    return Promise.race([answer, left]);
  };

  async #answer(seen: Seen, signal: AbortSignal | undefined): Promise<Response> {
    for (const [pattern, route] of this.#routes) {
      if (!pattern.test(`${seen.method} ${seen.path}`)) continue;
      const answer = await route(seen, signal);
      if (answer instanceof Error) throw answer;
      if (answer) return answer;
    }
    return refusal(404, "NOT_FOUND", `There is no route ${seen.method} ${seen.path}.`);
  }
}

export const json = (value: unknown, headers: Record<string, string> = {}) => Response.json(value, { headers });

export function refusal(status: number, code: string, detail: string, headers: Record<string, string> = {}): Response {
  return Response.json(
    { code, detail, error: detail, status },
    { status, headers: { "X-Request-Id": "request-1", ...headers } },
  );
}

export const broken = () => new TypeError("fetch failed");

export type Told = readonly [name: string, data: unknown];

/** Server-sent events; the stream ends after them, breaks with an error, or stays open. */
export function events(told: readonly Told[], how: "ends" | "breaks" | "stays" = "ends"): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream({
    async start(controller) {
      for (const [name, data] of told) {
        controller.enqueue(encoder.encode(`event: ${name}\nid: 1\ndata: ${JSON.stringify(data)}\n\n`));
      }
      // An error would take what was not read yet with it.
      await new Promise((resolve) => setImmediate(resolve));
      if (how === "ends") controller.close();
      if (how === "breaks") setImmediate(() => controller.error(new TypeError("terminated")));
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

export const status = (state: string): Told => ["status", { status: state }];
export const chunk = (output: unknown): Told => ["chunk", { output }];
export const done = (job: object = {}): Told => ["done", { id: "job-1", status: "COMPLETED", output: "made", ...job }];
