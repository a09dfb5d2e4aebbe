// The built-in workers: they run sample models inside the queue's own object, one run a job.
import { readConfig } from "../../config.ts";
import { findModel } from "../../models/index.ts";
import type { Model } from "../../models/model.ts";
import { endpointOf } from "../endpoints.ts";
import { putMedia } from "../media.ts";
import type { JobRow } from "../queue/job.ts";
import { concat } from "../queue/payloads.ts";
import type { Queue } from "../queue/queue.ts";
import { runSample, type SampleResult } from "./sample-models/run.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Undefined for an endpoint that is no public model: only real workers serve it. */
export function builtInRunner(ctx: DurableObjectState, env: Env, queue: () => Queue, settled: () => void) {
  const model = findModel(endpointOf(ctx.id.name));
  const reading = readConfig(env);
  if (!model || !reading.ok) return undefined;
  const delayMs = reading.config.sampleDelayMs;
  return (job: JobRow, worker: string, signal: AbortSignal) => {
    ctx.waitUntil(run(model, { job, worker, signal, delayMs, env, queue }).finally(settled));
  };
}

interface Run {
  readonly job: JobRow;
  readonly worker: string;
  readonly signal: AbortSignal;
  readonly delayMs: number;
  readonly env: Env;
  readonly queue: () => Queue;
}

async function run(model: Model, { job, worker, signal, delayMs, env, queue }: Run): Promise<void> {
  const result = await attempt(model, { job, worker, signal, delayMs, env, queue });
  const current = signal.aborted ? undefined : queue().store.find(job.id);
  if (!current || result.kind === "stopped") return;
  if (result.kind === "crashed") return queue().crash(current, worker);
  const error = result.kind === "failed" ? result.error : null;
  const output = result.kind === "failed" ? null : encoder.encode(JSON.stringify(result.output));
  queue().finish(current, worker, { error, output });
}

async function attempt(model: Model, { job, worker, signal, delayMs, env, queue }: Run): Promise<SampleResult> {
  try {
    // The queue hands the job over before it is ready to hear of it again.
    await scheduler.wait(0);
    const { store } = queue();
    const range = { key: job.input, from: job.inputFrom, to: job.inputTo };
    const input = JSON.parse(decoder.decode(concat(store.payloads.read(range), job.inputTo - job.inputFrom)));
    return await runSample(model, input, {
      signal,
      rest: (share) => scheduler.wait(delayMs * share),
      emit: (chunk) => {
        const current = store.find(job.id);
        if (current && !signal.aborted) queue().append(current, worker, chunk);
      },
      putMedia: (file) => putMedia(env.MEDIA, job.origin, file, Date.now()),
    });
  } catch (error) {
    console.error(JSON.stringify({ sample: model.id, error: error instanceof Error ? error.message : "unknown" }));
    return { kind: "failed", error: "the sample model failed" };
  }
}
