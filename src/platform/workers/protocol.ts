// The worker protocol: unmodified workers of the real service take jobs here and bring results.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { flows, orThrow, type Piece, splice, spliceFlowing } from "../answers.ts";
import { authenticate } from "../auth.ts";
import { type EndpointCall, endpointPath, endpointRoute } from "../endpoint-call.ts";
import { knownEndpoint } from "../endpoints.ts";
import { readJsonBody } from "../large-body.ts";
import type { PlatformRoute } from "../platform-route.ts";
import type { TakenJob } from "../queue/views.ts";
import { callOnce, callWithRetry, longPoll } from "../queue-client.ts";
import { probeConnection } from "./probe-connection.ts";
import { checked, readResult, resultBytes, resultSchema } from "./result.ts";

const chunkSchema = z.looseObject({ output: z.unknown() });
const workerSchema = z.object({
  worker: z.string().regex(/^[\w.-]{1,128}$/, "expected a name of letters, digits, _, . and -"),
});
const batchSchema = z.object({ batch_size: z.coerce.number().int().min(1).max(100).default(1) });
const pingSchema = z.object({
  job_id: z
    .string()
    .max(64 * 1024)
    .default(""),
});

const guards = [authenticate, knownEndpoint];
const errors = ["UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "INVALID_REQUEST", "UNAVAILABLE"] as const;
const answer = z.looseObject({});
const asking = {
  access: "platform",
  method: "get",
  params: workerSchema,
  answer,
  errors: [...errors, "RATE_LIMITED"],
} as const;
const polling = { ...asking, otherStatuses: [204] } as const;
const telling = {
  ...asking,
  method: "post",
  errors: [...errors, "JOB_NOT_FOUND", "JOB_NOT_HELD", "QUEUE_FULL"],
} as const;

export const workerRoutes: readonly PlatformRoute[] = [
  endpointRoute(
    { ...polling, path: `${endpointPath}/job-take/:worker`, summary: "Take a job, held until there is one" },
    guards,
    async (call, { params: { worker } }) => {
      const taken = await take(call, worker, 1);
      const [job] = taken.jobs;
      return job ? hand(call, worker, taken, requestOf(job)) : nothing();
    },
  ),
  endpointRoute(
    {
      ...polling,
      path: `${endpointPath}/job-take-batch/:worker`,
      summary: "Take several jobs",
      query: batchSchema,
      answer: z.array(answer),
    },
    guards,
    async (call, { params: { worker }, query }) => {
      const taken = await take(call, worker, query.batch_size);
      return taken.jobs.length > 0 ? hand(call, worker, taken, listOf(taken.jobs)) : nothing();
    },
  ),
  endpointRoute(
    {
      ...polling,
      path: `${endpointPath}/job-stop/:worker`,
      summary: "What to stop, held until there is something",
      answer: z.object({ jobsToStop: z.array(z.string()) }),
    },
    guards,
    async (call, { params: { worker } }) => {
      const held = call.heldFor(limits.takeHoldMs);
      const stops = orThrow(await longPoll(held, (queue, leftMs, ticket) => queue.stops(worker, ticket, leftMs)));
      return stops.length > 0 ? Response.json({ jobsToStop: stops }) : nothing();
    },
  ),
  endpointRoute(
    {
      ...telling,
      path: `${endpointPath}/job-done/:worker/:job`,
      summary: "A result, or a report of progress",
      body: resultSchema,
    },
    guards,
    async ({ request, job, queue }, { params: { worker } }) => {
      const { output, error, status, stopPod } = await readResult(request, queue);
      const outcome = { error: errorText(error), output };
      const told =
        status === "IN_PROGRESS"
          ? await callOnce(queue, (stub) => stub.report(worker, job, output))
          : await callOnce(queue, (stub) => stub.finish(worker, job, outcome));
      if ("refused" in told && output && "upload" in output)
        await callWithRetry(queue, (stub) => stub.discard(output.upload));
      if (status !== "IN_PROGRESS" && stopPod) await callWithRetry(queue, (stub) => stub.restart(worker));
      return Response.json(orThrow(told));
    },
  ),
  endpointRoute(
    { ...telling, path: `${endpointPath}/job-stream/:worker/:job`, summary: "A chunk of output", body: chunkSchema },
    guards,
    async ({ request, job, queue }, { params: { worker } }) => {
      const { output } = checked(chunkSchema, await readJsonBody(request, resultBytes));
      return Response.json(orThrow(await callOnce(queue, (stub) => stub.append(worker, job, output))));
    },
  ),
  endpointRoute(
    { ...asking, path: `${endpointPath}/ping/:worker`, summary: "Still here", query: pingSchema },
    guards,
    async ({ queue }, { params: { worker }, query }) => {
      const jobs = query.job_id.split(",").filter(Boolean);
      return Response.json(orThrow(await callWithRetry(queue, (stub) => stub.ping(worker, jobs))));
    },
  ),
];

function nothing(): Response {
  return new Response(null, { status: 204 });
}

const json = { "Content-Type": "application/json" };

/** Clients read `error` as a string, whatever the worker put there. */
function errorText(error: unknown): string | null {
  if (error === undefined || error === null || error === "") return null;
  return typeof error === "string" ? error : JSON.stringify(error);
}

interface Taken {
  readonly jobs: readonly TakenJob[];
  /** The poll was held, so its worker may have left meanwhile. */
  readonly waited: boolean;
}

async function take(call: EndpointCall, worker: string, count: number): Promise<Taken> {
  const askedAt = Date.now();
  const held = call.heldFor(limits.takeHoldMs);
  const jobs = orThrow(await longPoll(held, (queue, leftMs, ticket) => queue.take(worker, ticket, count, leftMs)));
  if (!call.request.signal.aborted) return { jobs, waited: Date.now() - askedAt >= waitedMs };
  const returned = giveBack(call, worker, jobs);
  call.waitUntil(returned);
  await returned;
  return { jobs: [], waited: true };
}

function giveBack(call: EndpointCall, worker: string, jobs: readonly TakenJob[]): Promise<void> {
  const ids = jobs.map(({ id }) => id);
  return ids.length === 0 ? Promise.resolve() : callWithRetry(call.queue, (queue) => queue.giveBack(worker, ids));
}

/** A poll that was answered sooner was not held. */
const waitedMs = 20;

/** Jobs whose worker left during the held poll, or in the middle of the answer, go back at once. */
function hand(call: EndpointCall, worker: string, { jobs, waited }: Taken, pieces: readonly Piece[]): Response {
  const { signal } = call.request;
  const waitUntil = (promise: Promise<unknown>) => call.waitUntil(promise);
  const broken = () => waitUntil(giveBack(call, worker, jobs));
  const ready = waited ? (to: WritableStream) => probeConnection(to, signal) : undefined;
  const body =
    waited || pieces.some(flows)
      ? spliceFlowing(pieces, { waitUntil, broken, ...(ready && { ready }) })
      : splice(pieces);
  return new Response(body, { headers: json });
}

/** The request is as it came, with its id last: it overrides an `id` of the client's own. */
function requestOf({ id, request }: TakenJob): Piece[] {
  return [request, `,"id":${JSON.stringify(id)}}`];
}

function listOf(jobs: readonly TakenJob[]): Piece[] {
  return [...jobs.flatMap((job, at) => [at === 0 ? "[" : ",", ...requestOf(job)]), "]"];
}
