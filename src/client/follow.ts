// Following a job: by server-sent events, and by asking again and again where those do not come through.
import { type Call, either, pause, pauseMs } from "./call.ts";
import { abortError, numberIn, SluiceError } from "./errors.ts";
import { inTime, readEvents } from "./events.ts";
import { end, isOver, type Job, type JobState, type Listeners, type ToldJob } from "./job.ts";

/** A browser has six connections to an HTTP/1.1 gateway, for all its tabs: the jobs beyond these ask. */
const maxStreams = 2;
/** Streams in a row that broke before they said anything. */
const maxMute = 2;
const asking = { firstMs: 500, growth: 1.5, maxMs: 5_000 };
/** A laptop sleeps, a train goes through a tunnel. */
const patientTries = 30;

type ToldEvent = ToldJob & { readonly usd: number; readonly code: string; readonly detail: string };

export function followerOf(call: Call) {
  let streams = 0;

  return async <Output>(
    path: (operation: string) => string,
    listeners: Listeners,
    signal: AbortSignal | undefined,
  ): Promise<Job<Output>> => {
    const { onState, onProgress, onChunk, onGap } = listeners;
    let last: JobState | undefined;
    let lastProgress: string | undefined;
    const tellState = (status: JobState) => {
      if (status !== last) onState?.(status);
      last = status;
    };
    const tellProgress = (progress: unknown) => {
      const text = JSON.stringify(progress);
      if (progress !== undefined && text !== lastProgress) onProgress?.(progress);
      lastProgress = text;
    };
    const tellChunk = (chunk: unknown) => onChunk?.((chunk as { output?: unknown }).output);

    /** Undefined where the gateway wants to be asked anew. Throws where the stream broke. */
    const listen = async (opened: () => void, heard: () => void): Promise<Job<Output> | undefined> => {
      const query = onProgress ? "?progress=true" : "";
      const left = new AbortController();
      const request = { isHeld: true, tries: 1, signal: either(left.signal, signal) };
      const { body } = await inTime(call(path("events") + query, request)).catch((error) => {
        left.abort();
        throw error;
      });
      opened();
      let cost: number | undefined;
      for await (const { name, data } of readEvents(body)) {
        if (signal?.aborted) throw abortError(signal);
        heard();
        const told = data as ToldEvent;
        if (name === "status") tellState(told.status);
        if (name === "progress") tellProgress(told);
        if (name === "chunk") tellChunk(told);
        if (name === "cost") cost = told.usd;
        if (name === "done") return end(told, cost);
        if (name === "retry") return undefined;
        if (name === "error") throw new SluiceError(told.code, told.detail);
      }
      return undefined;
    };

    const ask = async (): Promise<Job<Output>> => {
      for (let waitMs = asking.firstMs; ; ) {
        const streamed = onChunk ? await askForChunks() : "all";
        if (streamed === "some") {
          waitMs = asking.firstMs;
          continue;
        }
        const answer = await call(path("status"), { signal, tries: patientTries, isJson: true });
        const job = (await answer.json()) as ToldJob;
        tellState(job.status);
        if (!isOver(job.status)) tellProgress(job.output);
        // What was streamed since it was asked for comes first.
        else if (streamed === "all") return end(job, numberIn(answer.headers, "X-Cost"));
        else continue;
        await pause(waitMs * (0.75 + Math.random() / 2), signal);
        waitMs = Math.min(waitMs * asking.growth, asking.maxMs);
      }
    };

    /** Whether there may be more of them. A chunk is handed out once: where an answer was lost, so were its chunks. */
    const askForChunks = async (): Promise<"some" | "none" | "all"> => {
      try {
        const answer = await call(`${path("stream")}?wait=1000`, { signal, tries: 1, isJson: true });
        const { status, stream } = (await answer.json()) as { status: JobState; stream: unknown[] };
        for (const chunk of stream) tellChunk(chunk);
        if (stream.length > 0) return "some";
        return isOver(status) ? "all" : "none";
      } catch (error) {
        if (!(error instanceof SluiceError)) throw error;
        onGap?.();
        return "all";
      }
    };

    for (let mute = 0; streams < maxStreams && mute < maxMute; ) {
      let isOpen = false;
      streams++;
      try {
        const job = await listen(
          () => (isOpen = true),
          () => (mute = 0),
        );
        if (job) return job;
      } catch (error) {
        // The job's own end, or what a listener threw.
        if (signal?.aborted || !(error instanceof SluiceError) || error.job) throw error;
        // What the gateway had begun to say is lost, too, where its answer did not get through.
        if (isOpen || error.code === "NETWORK") onGap?.();
        mute++;
      } finally {
        streams--;
      }
      if (mute > 0) await pause(pauseMs(mute), signal);
    }
    return ask();
  };
}
