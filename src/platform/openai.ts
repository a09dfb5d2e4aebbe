// `/openai/*`: each call becomes a job, and its output the answer.
import * as z from "zod";
import { limits } from "../contract/limits.ts";
import { isFinal } from "../contract/states.ts";
import { Problem, renderOpenAiProblem } from "../errors.ts";
import { errorsOf } from "../http/call-route.ts";
import { type Kind, SKIM, WATCH } from "../json/json-listener.ts";
import { JsonScanner } from "../json/json-scanner.ts";
import { orThrow } from "./answers.ts";
import { authenticate } from "./auth.ts";
import { inCredit } from "./credits.ts";
import { type EndpointCall, endpointPath, endpointRoute } from "./endpoint-call.ts";
import { knownEndpoint } from "./endpoints.ts";
import { submissionOf } from "./job-body.ts";
import { readJsonBody } from "./large-body.ts";
import type { PlatformRoute } from "./platform-route.ts";
import type { StreamPart } from "./queue/queue-calls.ts";
import { callToSubmit, callWithRetry, type LongPoll, longPoll, lostOfStarted } from "./queue-client.ts";

const callSchema = z.looseObject({ stream: z.boolean().nullish() });
type OpenAiCall = z.output<typeof callSchema>;
const routePattern = /^\/v1(\/[\w.-]{1,128}){1,4}$/;
const encoder = new TextEncoder();
const json = { "Content-Type": "application/json" };
/** A refusal is short. */
const maxErrorBytes = 64 * 1024;
const closingBracket = 0x5d;

/** The call becomes a job, whose output is the answer. */
async function relay(call: EndpointCall, readBody: (() => Promise<OpenAiCall>) | undefined): Promise<Response> {
  const route = call.path.slice(call.path.indexOf("/openai/") + "/openai".length);
  if (!routePattern.test(route)) throw new Problem("NOT_FOUND", "There is no such route.");
  const body = await readBody?.();
  const input = { openai_route: route, ...(body && { openai_input: body }) };
  const submission = submissionOf({ input }, { sync: true, waitMs: limits.waitMs.max, origin: call.origin });
  const { id } = orThrow(await callToSubmit(call.queue, (queue) => queue.submit(submission, "openai")));
  return body?.stream === true ? streamed(call, id) : whole(call, id);
}

async function readCall(request: Request): Promise<OpenAiCall> {
  const checked = callSchema.safeParse(await readJsonBody(request, limits.runsyncPayloadBytes));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected an object");
  return checked.data;
}

async function whole(call: EndpointCall, id: string): Promise<Response> {
  const held = call.heldFor(limits.waitMs.max);
  const view = await longPoll(held, (queue, leftMs, ticket) => queue.wait(id, leftMs, ticket, "openai"), lostOfStarted);
  const { head, output } = orThrow(view);
  if (!isFinal(head.status)) await cancel(call, id);
  if (head.status !== "COMPLETED") throw failed(head);
  const bytes = output === null ? encoder.encode("null") : new Uint8Array(await new Response(output).arrayBuffer());
  const answer = onlyElement(bytes);
  const refusal = answer.byteLength <= maxErrorBytes ? refusalIn(answer) : undefined;
  return new Response(refusal ? JSON.stringify({ error: refusal }) : answer, {
    status: refusal ? statusOf(refusal) : 200,
    headers: json,
  });
}

function failed({ status, error }: { status: string; error?: string }): Problem {
  if (!isFinal(status)) return new Problem("MODEL_FAILED", "the model did not answer in time");
  return new Problem("MODEL_FAILED", error ?? `the job ended as ${status}`);
}

/** Workers whose handler is a generator answer a list of what it yielded: for a call that is not streamed, one element. */
function onlyElement(output: Uint8Array): Uint8Array {
  const places: number[] = [];
  const listener = {
    key: () => {},
    value(depth: number, kind: Kind, at: number) {
      if (depth === 0) return kind === "array" ? WATCH : SKIM;
      if (places.length < 2) places.push(at);
      return SKIM;
    },
    end: () => {},
  };
  new JsonScanner(listener).scan(output, 0, output.byteLength);
  return places.length === 1 ? output.subarray(places[0], output.lastIndexOf(closingBracket)) : output;
}

/** Workers answer a call that they refuse with OpenAI's own error; older ones of vLLM's without the `error` around it. */
function refusalIn(answer: Uint8Array): object | undefined {
  const said = JSON.parse(new TextDecoder().decode(answer));
  if (said?.object === "error") return said;
  // What has more members, such as a response that failed, is an answer.
  const isRefusal = typeof said?.error === "object" && Object.keys(said).length === 1;
  return isRefusal ? (said.error ?? undefined) : undefined;
}

/** A worker names the status in `code` where it knows one. */
function statusOf({ code }: { code?: unknown }): number {
  return typeof code === "number" && code >= 400 && code < 600 ? code : 404;
}

/** The client has left: the job is cancelled, so that it costs no more. */
function cancel(call: EndpointCall, id: string): Promise<unknown> {
  return callWithRetry(call.queue, (queue) => queue.cancel(id, "openai"));
}

/** Hands on each chunk as it comes. A client that leaves cancels the job. */
async function streamed(call: EndpointCall, id: string): Promise<Response> {
  const held = call.heldFor(limits.streamWaitMs.max);
  const beginning = onePart(held, id);
  call.waitUntil(beginning.catch(() => cancel(call, id)));
  const first = await beginning;
  if (first.items.length === 0 && !isFinal(first.status)) {
    await cancel(call, id);
    throw failed(first);
  }
  // It ended before its first chunk: what it answers is a refusal, or comes from a worker that does not stream.
  if (first.items.length === 0) return whole(call, id);
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const write = (text: string) => writer.write(encoder.encode(text));
  const handOn = async () => {
    for (let part = first; ; part = await nextPart(held, id)) {
      for (const item of part.items) await write(textOf(item));
      if (part.items.length > 0) continue;
      if (part.status !== "COMPLETED") await write(await lastWord(call, id));
      return writer.close();
    }
  };
  const cutShort = async () => {
    await writer.abort().catch(() => {});
    await cancel(call, id);
  };
  call.waitUntil(handOn().catch(cutShort));
  const headers = { "Content-Type": "text/event-stream" };
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
async function nextPart(held: LongPoll, id: string): Promise<StreamPart> {
  for (;;) {
    const part = await onePart(held, id);
    if (part.items.length > 0 || isFinal(part.status)) return part;
  }
}

/** What has come when the time is over. */
async function onePart(held: LongPoll, id: string): Promise<StreamPart> {
  const part = orThrow(
    await longPoll(held, (queue, leftMs, ticket) => queue.stream(id, leftMs, ticket, "openai"), lostOfStarted),
  );
  if (held.signal.aborted) throw new Error("the client left");
  return part;
}

/** An answer that has begun can only say in its last event that it failed. */
async function lastWord(call: EndpointCall, id: string): Promise<string> {
  const { head } = orThrow(
    await callWithRetry(call.queue, (queue) => queue.wait(id, 0, crypto.randomUUID(), "openai")),
  );
  return `data: ${JSON.stringify(renderOpenAiProblem(failed(head), call.exchange.requestId))}\n\n`;
}

function textOf(item: string): string {
  const { output } = JSON.parse(item) as { output: unknown };
  return typeof output === "string" ? output : `data: ${JSON.stringify(output)}\n\n`;
}

/** The shape of errors is set first: OpenAI's clients show no error of another shape. */
const guards = [errorsOf("openai"), authenticate, knownEndpoint];
const relayed = {
  path: `${endpointPath}/openai/:route{.+}`,
  access: "platform",
  answer: z.looseObject({}),
  errorShape: "openai",
  errors: [
    "UNAUTHORIZED",
    "INVALID_REQUEST",
    "ENDPOINT_NOT_FOUND",
    "NOT_FOUND",
    "JOB_NOT_FOUND",
    "RATE_LIMITED",
    "QUEUE_FULL",
    "MODEL_FAILED",
    "UNAVAILABLE",
    "UPSTREAM_TIMEOUT",
  ],
} as const;

export const openaiRoutes: readonly PlatformRoute[] = [
  endpointRoute({ ...relayed, method: "get", summary: "OpenAI's reading routes, such as v1/models" }, guards, (call) =>
    relay(call, undefined),
  ),
  endpointRoute(
    {
      ...relayed,
      method: "post",
      summary: "OpenAI's calls, such as v1/chat/completions",
      body: callSchema,
      streams: true,
      errors: [...relayed.errors, "NO_CREDITS"],
    },
    [...guards, inCredit],
    async (call) => relay(call, () => readCall(call.request)),
  ),
];
