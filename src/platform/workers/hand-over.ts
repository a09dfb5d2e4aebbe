// The moment a held take is answered: its worker may have left meanwhile, and then the job goes back at once.
import type { Context } from "hono";
import type { EndpointEnv } from "../endpoints.ts";
import { hold } from "../held.ts";
import type { TakenJob } from "../queue/endpoint-queue.ts";

/** A take that was answered sooner was held by nobody. */
const heldMs = 20;
/** A connection that its worker closed quietly answers the first write by a reset, and refuses the next. */
const knocks = 3;
const knockMs = 10;
/** JSON may begin with it. */
const blank = new TextEncoder().encode(" ");

export interface Take {
  readonly worker: string;
  readonly count: number;
  readonly holdMs: number;
  readonly write: (jobs: readonly TakenJob[]) => BodyInit | Promise<BodyInit>;
}

const headers = { "Content-Type": "application/json" };

export async function answerTake(c: Context<EndpointEnv>, { worker, count, holdMs, write }: Take): Promise<Response> {
  const { signal } = c.req.raw;
  const queue = c.get("queue");
  const waitUntil = (promise: Promise<unknown>) => c.executionCtx.waitUntil(promise);
  const askedAt = Date.now();
  /** Done to its end even when the request is cancelled: the runtime drops what nobody waits for. */
  const finishing = <T>(promise: Promise<T>): Promise<T> => {
    waitUntil(promise);
    return promise;
  };
  const giveBack = (jobs: readonly TakenJob[]) =>
    queue().giveBack(
      worker,
      jobs.map(({ id }) => id),
    );

  const held = { queue, waitMs: holdMs, signal, waitUntil };
  const jobs = await finishing(
    hold(held, (stub, leftMs, ticket) => stub.take(worker, ticket, count, leftMs)).then(async (taken) => {
      if (!signal.aborted || taken.length === 0) return taken;
      await giveBack(taken);
      return [];
    }),
  );
  if (jobs.length === 0) return c.body(null, 204);
  if (Date.now() - askedAt < heldMs) return new Response(await write(jobs), { headers });

  const { readable, writable } = new IdentityTransformStream();
  const deliver = async () => {
    try {
      await knock(writable, signal);
      await streamOf(await write(jobs)).pipeTo(writable);
    } catch {
      await giveBack(jobs);
    }
  };
  void finishing(deliver());
  return new Response(readable, { headers });
}

/** Throws where nobody is there any more. */
async function knock(door: WritableStream, signal: AbortSignal): Promise<void> {
  const writer = door.getWriter();
  for (let times = 0; times < knocks; times++) {
    await writer.write(blank);
    await scheduler.wait(knockMs);
    signal.throwIfAborted();
  }
  writer.releaseLock();
}

function streamOf(body: BodyInit): ReadableStream {
  return new Response(body).body ?? new ReadableStream();
}
