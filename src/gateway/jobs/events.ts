// `GET /v2/:model/events/:job`: a job's events, by token or by ticket; `POST` on the same path makes the ticket.
import { asProblem, Problem } from "../../errors.ts";
import { WatchedWriter } from "../../http/watched-writer.ts";
import type { Guard } from "../gateway-route.ts";
import { authenticate } from "../identity/authenticate.ts";
import { readControl } from "../operator-settings/control-reader.ts";
import { readJob, readObject } from "../upstream/upstream-answer.ts";
import { originOf, presentJob } from "./answer.ts";
import { cachedJob } from "./cached-job.ts";
import { ownJob } from "./follow.ts";
import { handedOut } from "./handed-out.ts";
import { handlesOf, type JobRef } from "./handle.ts";
import { type JobCall, jobKey } from "./job-call.ts";
import { jobEvents, type Source } from "./job-events.ts";
import { logJob } from "./logged-job.ts";
import { ticketsOf } from "./ticket.ts";

const heartbeatMs = 15_000;
const pollWaitMs = 1_000;

/** By the ticket in the query where there is one, else by the token. */
export const authenticateByTicket: Guard = async (call) => {
  const { request, config, path } = call;
  const ticket = new URL(request.url).searchParams.get("ticket");
  if (ticket === null) return authenticate(call);
  const lastEventId = request.headers.get("Last-Event-ID") ?? undefined;
  const opened = await ticketsOf(config).open(ticket, path, lastEventId, Date.now());
  if (!opened) throw new Problem("TICKET_REFUSED", "The ticket is not for this job, or its time is over.");
  const control = await readControl(call);
  if (control.isRevoked(opened)) throw new Problem("TICKET_REFUSED", "The token of this ticket was revoked.");
  call.principal = { ...opened, kind: "user", ownerHash: "" };
  call.control = control;
};

export async function mintTicket(call: JobCall): Promise<Response> {
  ownJob(call);
  const { ticket, expiresAt } = ticketsOf(call.config).mint(call.principal, call.path, Date.now());
  const origin = originOf(call);
  return Response.json({ url: `${origin}${call.path}?ticket=${ticket}`, expiresAt: new Date(expiresAt).toISOString() });
}

/**
 * Streams a job's events. A worker's progress is told only on request, since it costs another upstream call per poll.
 */
export async function events(call: JobCall, wantsProgress: boolean): Promise<Response> {
  const job = ownJob(call);
  const headers = { "Content-Type": "text/event-stream" };
  // A HEAD has no body, so no stream is started.
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
      const source = (await cachedSource(call, job, signal)) ?? sourceOf(call, job, wantsProgress, signal);
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
async function cachedSource(call: JobCall, job: JobRef, signal: AbortSignal): Promise<Source | undefined> {
  const cached = await cachedJob(call, job);
  return (
    cached && {
      poll: async () => ({ status: cached.status, stream: [] }),
      // The first caller paid for it.
      final: async () => ({ job: cached, costMicroUsd: 0 }),
      pause: (ms: number) => scheduler.wait(ms, { signal }),
      isOver: () => signal.aborted,
    }
  );
}

function sourceOf(call: JobCall, job: JobRef, wantsProgress: boolean, signal: AbortSignal): Source {
  const { upstream } = call;
  const present = async () => {
    const answered = await upstream.status(job.upstreamId, signal);
    const answer = await readJob(answered);
    const id = handlesOf(call.config).mint(jobKey(call), job);
    const { presented, costMicroUsd } = await presentJob(call, answer, job, id, answered);
    return { job: presented, costMicroUsd };
  };
  return {
    poll: async () => {
      const { status, stream } = await readObject(await upstream.stream(job.upstreamId, pollWaitMs, signal));
      logJob(call.exchange, String(status));
      const chunks = Array.isArray(stream) ? stream : [];
      await handedOut.chunks(call, job, chunks);
      return { status: String(status), stream: chunks };
    },
    final: present,
    ...(wantsProgress && {
      progress: async () => {
        const { status, output } = (await present()).job;
        return status === "IN_PROGRESS" ? (output ?? undefined) : undefined;
      },
    }),
    pause: (ms: number) => scheduler.wait(ms, { signal }),
    isOver: () => signal.aborted,
  };
}
