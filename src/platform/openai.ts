// `/openai/*`: each call becomes a job, and its output the answer.
import { type Context, Hono, type MiddlewareHandler } from "hono";
import * as z from "zod";
import { limits } from "../contract/limits.ts";
import type { Operation } from "../contract/operation.ts";
import { isFinal } from "../contract/states.ts";
import { Problem } from "../errors.ts";
import { parseJson, readWhole } from "../wire/body.ts";
import { accepted } from "./answers.ts";
import type { EndpointEnv } from "./endpoints.ts";
import { hold } from "./held.ts";
import { submissionOf } from "./job-body.ts";
import { heldBy, originOf } from "./jobs.ts";

const callSchema = z.looseObject({ stream: z.boolean().optional() });
const routePattern = /^\/v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const json = { "Content-Type": "application/json" };

/** Stands before authentication: a refused key is told in OpenAI's shape as well. */
export const inOpenAiShape: MiddlewareHandler<EndpointEnv> = async (c, next) => {
  c.get("exchange").errorShape = "openai";
  await next();
};

export const openai = new Hono<EndpointEnv>().on(["GET", "POST"], "/openai/*", async (c) => {
  const route = c.req.path.slice(c.req.path.indexOf("/openai/") + "/openai".length);
  if (!routePattern.test(route)) throw new Problem("NOT_FOUND", "There is no such route.");
  const call = c.req.method === "GET" ? undefined : await readCall(c.req.raw);
  const input = { openai_route: route, ...(call && { openai_input: call }) };
  const door = { sync: true, waitMs: limits.waitMs.max, origin: originOf(c) };
  const { id } = accepted(await c.get("queue")().submit(submissionOf({ input }, door)));
  return call?.stream === true ? streamed(c, id) : whole(c, id);
});

async function readCall(request: Request): Promise<z.infer<typeof callSchema>> {
  const checked = callSchema.safeParse(parseJson(await readWhole(request, limits.runsyncPayloadBytes)));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected an object");
  return checked.data;
}

async function whole(c: Context<EndpointEnv>, id: string): Promise<Response> {
  const held = heldBy(c, limits.waitMs.max);
  const { head, output } = accepted(
    await hold(held, (queue, leftMs, ticket) => queue.wait(id, leftMs, ticket, "runsync")),
  );
  if (head.status !== "COMPLETED") throw failed(head);
  const text = output === null ? "null" : await new Response(output).text();
  const refused = /^\{"error":\{/.test(text);
  return new Response(text, { status: refused ? 404 : 200, headers: json });
}

function failed({ status, error }: { status: string; error?: string }): Problem {
  return new Problem("MODEL_FAILED", error ?? `the job ended as ${status}`);
}

/** Hands on each chunk as it comes. A client that leaves cancels the job. */
function streamed(c: Context<EndpointEnv>, id: string): Response {
  const encoder = new TextEncoder();
  const held = heldBy(c, limits.streamWaitMs.max);
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const relay = async () => {
    try {
      for (;;) {
        const part = accepted(await hold(held, (queue, leftMs, ticket) => queue.stream(id, leftMs, ticket)));
        for (const item of part.items) await writer.write(encoder.encode(textOf(item)));
        if (part.items.length === 0 && isFinal(part.status)) break;
      }
      await writer.close();
    } catch {
      await writer.abort().catch(() => {});
      await c.get("queue")().cancel(id);
    }
  };
  c.executionCtx.waitUntil(relay());
  return new Response(readable, { headers: { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" } });
}

function textOf(item: string): string {
  const { output } = JSON.parse(item) as { output: unknown };
  return typeof output === "string" ? output : `data: ${JSON.stringify(output)}\n\n`;
}

const base = { path: "/platform/v2/{endpoint}/openai/{route}", access: "platform" } as const;
const errors = ["UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "RATE_LIMITED", "INVALID_JSON", "MODEL_FAILED"] as const;

export const openaiOperations: readonly Operation[] = [
  { ...base, method: "get", summary: "OpenAI's reading routes, such as v1/models", answer: z.looseObject({}), errors },
  {
    ...{ ...base, method: "post", summary: "OpenAI's calls, such as v1/chat/completions" },
    ...{ body: callSchema, answer: z.looseObject({}), errors },
  },
];
