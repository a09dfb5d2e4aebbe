// The built-in workers: they run sample models inside the queue's own object, one run a job.
import { readConfig } from "../../config.ts";
import { findModel } from "../../models/index.ts";
import type { Model } from "../../models/model.ts";
import { endpointOf } from "../endpoints.ts";
import { putMedia } from "../media.ts";
import type { RunJob } from "../queue/built-in-runs.ts";
import type { JobRow } from "../queue/job.ts";
import type { Queue } from "../queue/queue.ts";
import type { WorkerDesk } from "../queue/worker-desk.ts";
import { runSample, type SampleResult } from "./sample-models/run.ts";

const encoder = new TextEncoder();

/** What the object gives, once it is built. */
interface Around {
  readonly queue: () => Queue;
  readonly desk: () => WorkerDesk;
  readonly settled: () => void;
}

interface Run {
  readonly model: Model;
  readonly job: JobRow;
  readonly worker: string;
  readonly signal: AbortSignal;
  readonly delayMs: number;
  readonly media: R2Bucket;
  readonly queue: () => Queue;
  readonly desk: () => WorkerDesk;
}

/** Undefined for an endpoint that is no public model: only real workers serve it. */
export function builtInRunner(ctx: DurableObjectState, env: Env, { queue, desk, settled }: Around): RunJob | undefined {
  const model = findModel(endpointOf(ctx.id.name));
  const reading = readConfig(env);
  if (!model || !reading.ok) return undefined;
  const shared = { model, queue, desk, delayMs: reading.config.sampleDelayMs, media: env.MEDIA };
  return (job, worker, signal) => ctx.waitUntil(run({ ...shared, job, worker, signal }).finally(settled));
}

async function run(run: Run): Promise<void> {
  const result = await attempt(run);
  const { job, worker, signal, desk } = run;
  const current = signal.aborted ? undefined : run.queue().find(job.id);
  if (!current || result.kind === "stopped") return;
  if (result.kind === "crashed") return desk().crash(current, worker);
  const error = result.kind === "failed" ? result.error : null;
  const output = result.kind === "failed" ? null : encoder.encode(JSON.stringify(result.output));
  desk().finish(current, worker, { error, output });
}

async function attempt({ model, job, worker, signal, delayMs, media, queue, desk }: Run): Promise<SampleResult> {
  try {
    // The queue hands the job over before it is ready to hear of it again.
    await scheduler.wait(0);
    if (signal.aborted) return { kind: "stopped" };
    const range = { key: job.input, from: job.inputFrom, to: job.inputTo };
    const input = JSON.parse(await new Blob([...queue().store.payloads.read(range)]).text());
    return await runSample(model, input, {
      signal,
      rest: (share) => scheduler.wait(delayMs * share),
      emit: (chunk) => {
        const current = signal.aborted ? undefined : queue().find(job.id);
        if (current) desk().append(current, worker, chunk);
      },
      putMedia: (file) => putMedia(media, job.origin, file, Date.now()),
    });
  } catch (error) {
    console.error(JSON.stringify({ sample: model.id, error: error instanceof Error ? error.message : "unknown" }));
    return { kind: "failed", error: "the sample model failed" };
  }
}
