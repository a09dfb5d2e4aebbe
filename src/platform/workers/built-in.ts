// The built-in workers: they run sample models inside the queue's own object, one run a job.
import { readConfig } from "../../config.ts";
import { findModel } from "../../models/index.ts";
import type { Model } from "../../models/model.ts";
import { runSample, type SampleResult } from "../../samples/run-sample.ts";
import { Debits } from "../credits.ts";
import { putMedia } from "../media.ts";
import type { PublicModel } from "../queue/built-in-runs.ts";
import type { JobRow } from "../queue/job.ts";
import type { RunnerDeps } from "../queue/public-model.ts";
import { readQueueName } from "../queue/queue-name.ts";
import { GivenMedia } from "./given-media.ts";

const encoder = new TextEncoder();

interface Run extends RunnerDeps {
  readonly model: Model;
  readonly job: JobRow;
  readonly worker: string;
  readonly signal: AbortSignal;
  readonly delayMs: number;
  readonly media: R2Bucket;
  readonly given: GivenMedia;
  readonly exports: Cloudflare.Exports;
}

/** Undefined for an endpoint that is no public model: only real workers serve it. */
export function publicModel(ctx: DurableObjectState, env: Env, deps: RunnerDeps): PublicModel | undefined {
  const model = findModel(readQueueName(ctx.id.name).endpoint);
  const reading = readConfig(env);
  if (!model || !reading.ok) return undefined;
  const delayMs = reading.config.sampleDelayMs;
  const shared = { ...deps, model, delayMs, media: env.MEDIA, given: new GivenMedia(), exports: ctx.exports };
  const debits = new Debits({ ctx, env, model, payloads: () => deps.queue().store.payloads });
  return {
    run: (job, worker, signal) => ctx.waitUntil(run({ ...shared, job, worker, signal })),
    streamed: (job, chunk) => debits.streamed(job, chunk),
    completed: (job) => debits.completed(job),
  };
}

async function run(run: Run): Promise<void> {
  const result = await attempt(run);
  const { job, worker, signal, workers } = run;
  if (signal.aborted || result.kind === "stopped") return;
  if (result.kind === "crashed") return workers().crash(worker, job.id);
  const error = result.kind === "failed" ? result.error : null;
  const output = result.kind === "failed" ? null : encoder.encode(JSON.stringify(result.output));
  workers().finish(worker, job.id, { error, output });
}

async function attempt(run: Run): Promise<SampleResult> {
  const { model, job, worker, signal, delayMs, queue, workers } = run;
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
        if (!signal.aborted) workers().append(worker, job.id, chunk);
      },
      putMedia: (file) => putMedia(run.media, job.origin, file, Date.now()),
      withMedia: (url, use) => run.given.use(url, { origin: job.origin, exports: run.exports }, use),
    });
  } catch (error) {
    console.error(JSON.stringify({ sample: model.id, error: error instanceof Error ? error.message : "unknown" }));
    return { kind: "failed", error: "the sample model failed" };
  }
}
