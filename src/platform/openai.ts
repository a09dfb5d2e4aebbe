// `/openai/*`: each call becomes a job, and its output the answer.
import { type Context, Hono, type MiddlewareHandler } from "hono";
import * as z from "zod";
import { limits } from "../contract/limits.ts";
import type { Operation } from "../contract/operation.ts";
import { isFinal } from "../contract/states.ts";
import { Problem, renderOpenAiProblem } from "../errors.ts";
import type { AppEnv } from "../wire/exchange.ts";
import { accepted } from "./answers.ts";
import type { EndpointEnv } from "./endpoints.ts";
import { ask, type Held, hold } from "./held.ts";
import { submissionOf } from "./job-body.ts";
import { heldBy, originOf } from "./jobs.ts";
import { readJson } from "./large-body.ts";
import type { Part } from "./queue/endpoint-queue.ts";

const callSchema = z.looseObject({ stream: z.boolean().nullish() });
const routePattern = /^\/v1(\/[\w.-]{1,128}){1,4}$/;
const encoder = new TextEncoder();
const json = { "Content-Type": "application/json" };

/** Whatever refuses a call under these routes, OpenAI's clients show nothing of another shape. */
export const openaiErrors: MiddlewareHandler<AppEnv> = async (c, next) => {
  c.get("exchange").errorShape = "openai";
  await next();
};

export const openai = new Hono<EndpointEnv>().on(["GET", "POST"], "/openai/:route{.+}", async (c) => {
  const route = c.req.path.slice(c.req.path.indexOf("/openai/") + "/openai".length);
  if (!routePattern.test(route)) throw new Problem("NOT_FOUND", "There is no such route.");
  const call = c.req.method === "GET" ? undefined : await readCall(c.req.raw);
  const input = { openai_route: route, ...(call && { openai_input: call }) };
  const door = { sync: true, waitMs: limits.waitMs.max, origin: originOf(c) };
  const submission = submissionOf({ input }, door);
  const { id } = accepted(await ask(c.get("queue"), (queue) => queue.submit(submission, "openai")));
  return call?.stream === true ? streamed(c, id) : whole(c, id);
});

async function readCall(request: Request): Promise<z.infer<typeof callSchema>> {
  const checked = callSchema.safeParse(await readJson(request, limits.runsyncPayloadBytes));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected an object");
  return checked.data;
}

async function whole(c: Context<EndpointEnv>, id: string): Promise<Response> {
  const held = heldBy(c, limits.waitMs.max);
  const view = await hold(held, (queue, leftMs, ticket) => queue.wait(id, leftMs, ticket, "openai"));
  const { head, output } = accepted(view);
  if (!isFinal(head.status)) await cancel(c, id);
  if (head.status !== "COMPLETED") throw failed(head);
  const text = output === null ? "null" : await new Response(output).text();
  return new Response(text, { status: statusOf(text), headers: json });
}

function failed({ status, error }: { status: string; error?: string }): Problem {
  if (!isFinal(status)) return new Problem("MODEL_FAILED", "the model did not answer in time");
  return new Problem("MODEL_FAILED", error ?? `the job ended as ${status}`);
}

/** Workers answer a call that they refuse with OpenAI's own error, and its status in `code` where they know one. */
function statusOf(text: string): number {
  if (!text.startsWith('{"error":{')) return 200;
  const { code } = (JSON.parse(text) as { error: { code?: unknown } }).error;
  return typeof code === "number" && code >= 400 && code < 600 ? code : 404;
}

/** Nobody waits for the answer any more, so nobody should pay for it. */
function cancel(c: Context<EndpointEnv>, id: string): Promise<unknown> {
  return ask(c.get("queue"), (queue) => queue.cancel(id));
}

/** Hands on each chunk as it comes. A client that leaves cancels the job. */
async function streamed(c: Context<EndpointEnv>, id: string): Promise<Response> {
  const held = heldBy(c, limits.streamWaitMs.max);
  const beginning = nextPart(held, id);
  c.executionCtx.waitUntil(beginning.catch(() => cancel(c, id)));
  const first = await beginning;
  // It ended before its first chunk: what it answers is a refusal, or comes from a worker that does not stream.
  if (first.items.length === 0) return whole(c, id);
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const write = (text: string) => writer.write(encoder.encode(text));
  const relay = async () => {
    for (let part = first; ; part = await nextPart(held, id)) {
      for (const item of part.items) await write(textOf(item));
      if (part.items.length > 0) continue;
      if (part.status !== "COMPLETED") await write(await lastWord(c, id));
      return writer.close();
    }
  };
  const cutShort = async () => {
    await writer.abort().catch(() => {});
    await cancel(c, id);
  };
  c.executionCtx.waitUntil(relay().catch(cutShort));
  const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
  return new Response(pipeable(readable), { headers });
}

/** The runtime pipes no transform into another, and the gateway has one of its own in the same isolate. */
function pipeable(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const { value, done } = await reader.read();
      if (!done) return controller.enqueue(value);
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** The next chunks; none where the job is at its end. */
async function nextPart(held: Held, id: string): Promise<Part> {
  for (;;) {
    const part = accepted(await hold(held, (queue, leftMs, ticket) => queue.stream(id, leftMs, ticket, "openai")));
    if (held.signal.aborted) throw new Error("the client left");
    if (part.items.length > 0 || isFinal(part.status)) return part;
  }
}

/** An answer that has begun can only say in its last event that it failed. */
async function lastWord(c: Context<EndpointEnv>, id: string): Promise<string> {
  const { head } = accepted(await ask(c.get("queue"), (queue) => queue.wait(id, 0, crypto.randomUUID(), "openai")));
  return `data: ${JSON.stringify(renderOpenAiProblem(failed(head), c.get("exchange").requestId))}\n\n`;
}

function textOf(item: string): string {
  const { output } = JSON.parse(item) as { output: unknown };
  return typeof output === "string" ? output : `data: ${JSON.stringify(output)}\n\n`;
}

const base = { path: "/platform/v2/{endpoint}/openai/{route}", access: "platform" } as const;
const errors = [
  "UNAUTHORIZED",
  "ENDPOINT_NOT_FOUND",
  "RATE_LIMITED",
  "INVALID_JSON",
  "QUEUE_FULL",
  "MODEL_FAILED",
] as const;

export const openaiOperations: readonly Operation[] = [
  { ...base, method: "get", summary: "OpenAI's reading routes, such as v1/models", answer: z.looseObject({}), errors },
  {
    ...base,
    method: "post",
    summary: "OpenAI's calls, such as v1/chat/completions",
    body: callSchema,
    answer: z.looseObject({}),
    errors,
  },
];
