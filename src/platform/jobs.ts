// The job interface: run, follow, steer. Each route with its guards, in one statement.
import { followMethods, jobOperationsAt } from "../contract/job-operations.ts";
import { limits } from "../contract/limits.ts";
import { answerJob, orThrow } from "./answers.ts";
import { authenticate } from "./auth.ts";
import { inCredit } from "./credits.ts";
import { endpointPath, endpointRoute } from "./endpoint-call.ts";
import { knownEndpoint } from "./endpoints.ts";
import { submitBody } from "./job-body.ts";
import type { PlatformRoute } from "./platform-route.ts";
import type { QueueStub } from "./queue/queue-calls.ts";
import { callOnce, callToRestart, callWithRetry, longPoll, lostOfStarted } from "./queue-client.ts";

const endpointErrors = [
  "UNAUTHORIZED",
  "ENDPOINT_NOT_FOUND",
  "RATE_LIMITED",
  "INVALID_REQUEST",
  "UNAVAILABLE",
] as const;
const jobErrors = [...endpointErrors, "JOB_NOT_FOUND"] as const;
const submitErrors = [...endpointErrors, "NO_CREDITS", "QUEUE_FULL", "UPSTREAM_TIMEOUT"] as const;

const guards = [authenticate, knownEndpoint];
const paidGuards = [...guards, inCredit];
const asking = { access: "platform", errors: endpointErrors } as const;
const steering = { access: "platform", errors: jobErrors } as const;
const submitting = { access: "platform", errors: submitErrors } as const;
const operations = jobOperationsAt(endpointPath, { furthest: 1_000_000, most: 1000 });

export const jobRoutes: readonly PlatformRoute[] = [
  endpointRoute({ ...submitting, ...operations.run }, paidGuards, async ({ request, origin, queue }) => {
    const { id } = await submitBody(request, { sync: false, waitMs: 0, origin }, queue);
    return Response.json({ id, status: "IN_QUEUE" });
  }),
  endpointRoute(
    { ...submitting, ...operations.runsync },
    paidGuards,
    async (call, { query: { wait = limits.waitMs.default } }) => {
      const { request, origin } = call;
      const { id } = await submitBody(request, { sync: true, waitMs: wait, origin }, call.queue);
      return answerJob(
        await longPoll(
          call.heldFor(wait),
          (queue, leftMs, ticket) => queue.wait(id, leftMs, ticket, "runsync"),
          lostOfStarted,
        ),
      );
    },
  ),
  ...followMethods.flatMap((method) => followRoutes(method)),
  endpointRoute({ ...steering, ...operations.cancel }, guards, ({ job, queue }) =>
    answerQueue(queue, (it) => it.cancel(job)),
  ),
  endpointRoute(
    {
      ...operations.retry,
      access: "platform",
      errors: [...jobErrors, "NO_CREDITS", "NOT_RETRYABLE", "UPSTREAM_TIMEOUT"],
    },
    paidGuards,
    async ({ job, queue }) => Response.json(orThrow(await callToRestart(queue, (stub) => stub.retry(job)))),
  ),
  endpointRoute({ ...asking, ...operations.purge }, guards, async ({ queue }) => {
    const { removed } = orThrow(await callOnce(queue, (stub) => stub.purge()));
    return Response.json({ removed, status: "completed" });
  }),
  endpointRoute({ ...asking, ...operations.health }, guards, ({ queue }) => answerQueue(queue, (it) => it.health())),
  endpointRoute({ ...asking, ...operations.metrics }, guards, ({ queue }) => answerQueue(queue, (it) => it.metrics())),
  endpointRoute({ ...asking, ...operations.requests }, guards, ({ queue }, { query: { offset, limit } }) =>
    answerQueue(queue, (it) => it.requests(offset, limit)),
  ),
];

/** What the queue says, which may be asked twice. */
async function answerQueue(queue: () => QueueStub, ask: (queue: QueueStub) => Promise<object>): Promise<Response> {
  return Response.json(orThrow(await callWithRetry(queue, ask)));
}

function followRoutes(method: (typeof followMethods)[number]): PlatformRoute[] {
  const following = { ...steering, method };
  return [
    endpointRoute({ ...following, ...operations.status }, guards, async ({ job, queue }, { query: { ttl = null } }) =>
      answerJob(await callWithRetry(queue, (stub) => stub.status(job, ttl))),
    ),
    endpointRoute(
      { ...following, ...operations.statusSync },
      guards,
      async (call, { query: { wait = limits.waitMs.default } }) => {
        const { job } = call;
        const held = call.heldFor(wait);
        return answerJob(await longPoll(held, (queue, leftMs, ticket) => queue.wait(job, leftMs, ticket, "status")));
      },
    ),
    endpointRoute(
      { ...following, ...operations.stream },
      guards,
      async (call, { query: { wait = limits.streamWaitMs.default, format } }) => {
        const { job } = call;
        const held = call.heldFor(wait);
        const part = await longPoll(held, (queue, leftMs, ticket) => queue.stream(job, leftMs, ticket));
        const { status, items } = orThrow(part);
        const stream = `[${items.join(",")}]`;
        const body = format === "array" ? stream : `{"status":"${status}","stream":${stream}}`;
        return new Response(body, { headers: { "Content-Type": "application/json" } });
      },
    ),
  ];
}
