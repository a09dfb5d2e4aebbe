// `GET /v2/:model/events/:job`: a job's events, by token or by ticket; `POST` on the same path makes the ticket.
import { asProblem, Problem } from "../../errors.ts";
import { WatchedWriter } from "../../wire/watched-writer.ts";
import type { Guard } from "../behind.ts";
import type { GatewayEnv } from "../env.ts";
import { authenticate, readControl } from "../guards.ts";
import { callUpstream } from "../upstream.ts";
import { readJob, readObject, type UpstreamJob } from "../upstream-answer.ts";
import { originOf, presentJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { ownJob } from "./follow.ts";
import { handedOut } from "./handed-out.ts";
import { type Handle, handlesOf } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { jobEvents, type Source } from "./job-events.ts";
import { logJob } from "./logged-job.ts";
import { ticketsOf } from "./ticket.ts";

const heartbeatMs = 15_000;
const pollWaitMs = 1_000;

/** By the ticket in the query where there is one, else by the token. */
export const authenticateByTicket: Guard<GatewayEnv> = async (c) => {
  const ticket = c.req.query("ticket");
  if (ticket === undefined) return authenticate(c);
  const tickets = ticketsOf(c.get("config"));
  const opened = await tickets.open(ticket, c.req.path, c.req.header("Last-Event-ID"), Date.now());
  if (!opened) throw new Problem("TICKET_REFUSED", "The ticket is not for this job, or its time is over.");
  const control = await readControl(c);
  if (control.isRevoked(opened)) throw new Problem("TICKET_REFUSED", "The token of this ticket was revoked.");
  const principal = { ...opened, kind: "user" as const, ownerHash: "" };
  c.set("principal", principal);
  c.set("control", control);
};

export async function mintTicket(call: JobCall): Promise<Response> {
  await ownJob(call);
  const { ticket, expiresAt } = ticketsOf(call.config).mint(call.principal, call.path, Date.now());
  const origin = originOf(call);
  return Response.json({ url: `${origin}${call.path}?ticket=${ticket}`, expiresAt: new Date(expiresAt).toISOString() });
}

export async function events(call: JobCall): Promise<Response> {
  const job = await ownJob(call);
  const headers = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
  // Nobody reads what a HEAD would start.
  if (call.request.method === "HEAD") return new Response(null, { headers });
  const eventId = ticketsOf(call.config).eventId(call.path);
  const reconnected = call.request.headers.has("Last-Event-ID");
  const { readable, writable } = new IdentityTransformStream();
  const writer = new WatchedWriter(writable);
  const encoder = new TextEncoder();
  const signal = AbortSignal.any([call.request.signal, writer.gone]);
  const write = (text: string) => writer.write(encoder.encode(text));
  const heartbeat = setInterval(() => void write(":\n\n").catch(() => {}), heartbeatMs);
  const relay = async () => {
    try {
      const source = (await cachedSource(call, job, signal)) ?? sourceOf(call, job, signal);
      for await (const text of jobEvents(source, eventId, reconnected)) await write(text);
    } catch (error) {
      const problem = asProblem(error);
      if (!signal.aborted) {
        call.exchange.code = problem.code;
        await write(failure(problem)).catch(() => {});
      }
    } finally {
      clearInterval(heartbeat);
      await writer.close().catch(() => {});
    }
  };
  const relayed = relay();
  call.waitUntil(relayed);
  call.exchange.logAfter = relayed;
  return new Response(readable, { headers });
}

function failure({ code, message }: Problem): string {
  return `event: error\ndata: ${JSON.stringify({ code, detail: message })}\n\n`;
}

/** A job from the cache is at its end when it begins. */
async function cachedSource(call: JobCall, job: Handle, signal: AbortSignal): Promise<Source | undefined> {
  const cached = await cachedJob(call, job);
  return (
    cached && {
      poll: async () => ({ status: cached.status, stream: [] }),
      final: async () => cached,
      pause: (ms: number) => scheduler.wait(ms, { signal }),
      isOver: () => signal.aborted,
    }
  );
}

function sourceOf(call: JobCall, job: Handle, signal: AbortSignal) {
  const upstream = call.upstream;
  const model = call.target.name;
  const ask = (operation: string, query?: string) =>
    callUpstream(upstream, {
      method: "GET",
      segments: [model, operation, job.ref],
      repeatable: operation === "status",
      signal,
      ...(query !== undefined && { query, waitMs: pollWaitMs }),
    });
  return {
    poll: async () => {
      const { status, stream } = await readObject(await ask("stream", `wait=${pollWaitMs}`));
      logJob(call.exchange, String(status));
      const chunks = Array.isArray(stream) ? stream : [];
      await handedOut.chunks(call, job, chunks);
      return { status: String(status), stream: chunks };
    },
    final: async (): Promise<UpstreamJob> => {
      const answered = await ask("status");
      const answer = await readJob(answered);
      const id = handlesOf(call.config).mint(jobKey(call), job);
      return (await presentJob(call, answer, job, id, answered)).presented;
    },
    pause: (ms: number) => scheduler.wait(ms, { signal }),
    isOver: () => signal.aborted,
  };
}
