// A job's life as server-sent events, made of polls that grow rarer, and of few enough for the smallest plan.
import { isFinal } from "../../contract/states.ts";
import { microUsdAsUsd } from "../quota/amounts.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";

/** A request may make 50 calls on the free plan; one of them fetches the final output. */
const maxPolls = 40;
const pauses = { firstMs: 500, growth: 1.3, maxMs: 5_000 };
const reconnectMs = 1_000;

export interface Source {
  /** The chunks since the last call, and the job's status. */
  readonly poll: () => Promise<{ status: string; stream: readonly unknown[] }>;
  /** The job as its owner sees it, and what it cost them, where that is known. */
  readonly final: () => Promise<{ readonly job: UpstreamJob; readonly costMicroUsd: number | undefined }>;
  /** What a worker said of its progress last; only where the caller wants to hear of it, since it is one question more. */
  readonly progress?: () => Promise<unknown>;
  readonly pause: (ms: number) => Promise<void>;
  readonly isOver: () => boolean;
}

/** Events as text. A stream that was reconnected may have missed chunks, and says so. */
export async function* jobEvents(source: Source, eventId: string, reconnected: boolean): AsyncGenerator<string> {
  const event = (name: string, data: unknown) => `event: ${name}\nid: ${eventId}\ndata: ${JSON.stringify(data)}\n\n`;
  if (reconnected) yield event("gap", { reason: "reconnected" });
  let last: string | undefined;
  let lastProgress: string | undefined;
  let pauseMs = pauses.firstMs;
  const pollsLeft = source.progress ? maxPolls / 2 : maxPolls;
  for (let polls = 0; polls < pollsLeft && !source.isOver(); polls++) {
    const { status, stream } = await source.poll();
    if (status !== last) yield event("status", { status });
    last = status;
    for (const chunk of stream) yield event("chunk", chunk);
    if (stream.length > 0) {
      pauseMs = pauses.firstMs;
      continue;
    }
    if (isFinal(status)) {
      const { job, costMicroUsd } = await source.final();
      if (costMicroUsd !== undefined) yield event("cost", { usd: microUsdAsUsd(costMicroUsd) });
      yield event("done", job);
      return;
    }
    const progress = status === "IN_PROGRESS" ? await source.progress?.() : undefined;
    if (progress !== undefined && JSON.stringify(progress) !== lastProgress) yield event("progress", progress);
    lastProgress = JSON.stringify(progress) ?? lastProgress;
    await source.pause(pauseMs);
    pauseMs = Math.min(pauseMs * pauses.growth, pauses.maxMs);
  }
  yield `retry: ${reconnectMs}\n${event("retry", { afterMs: reconnectMs })}`;
}
