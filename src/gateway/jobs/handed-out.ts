// Counts the output that a caller is given before its job ends, so that a cancel does not make it free. The meter is
// told of the first piece before it leaves, and of later ones every `everyMs`.
import { isFinal } from "../../contract/states.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import { isRecent } from "../../isolate/recent.ts";
import type { Ending } from "../quota/metering.ts";
import { bytesOfText } from "../quota/text-bytes.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import type { JobRef } from "./handle.ts";
import type { JobCall } from "./job-call.ts";
import { logUnsettled } from "./payers-meter.ts";

interface HandedOutSoFar {
  /** Chunks that the meter has not been told of. */
  pieces: number;
  textBytes: number;
  /** The longest output that a status has said. */
  whole: { readonly pieces: number; readonly textBytes: number } | undefined;
  wholeTold: number;
  toldAt: number;
  /** When a request promised to tell the meter of the rest. */
  promisedAt: number;
}

const rememberedCharacters = 512 * 1024;
const rememberMs = 60 * 60 * 1000;
/** A promise older than this is void: its request may have died. */
const lostMs = 1_000;
const never = Number.NEGATIVE_INFINITY;

type Teller = Pick<JobCall, "meter" | "waitUntil">;

/**
 * The methods return a promise only for the first output that this isolate hands out of a job: only that waits for the
 * meter.
 */
export class HandedOut {
  /** Tests set their own. */
  everyMs = 1_000;
  readonly #jobs = new BoundedMemory<HandedOutSoFar>(rememberedCharacters);

  /** Chunks of a stream: their text is added to what was handed out before. */
  chunks(call: Teller, job: JobRef, chunks: readonly unknown[]): Promise<void> | undefined {
    if (chunks.length === 0) return undefined;
    return this.pieces(call, job, chunks.length, bytesOfText(chunks.map(textOf)));
  }

  pieces(call: Teller, job: JobRef, pieces: number, textBytes: number): Promise<void> | undefined {
    const now = Date.now();
    const known = this.#jobs.get(job.admission, now);
    if (!known) return this.#first(call, job, { pieces, textBytes, whole: false }, now);
    known.pieces += pieces;
    known.textBytes += textBytes;
    this.#promise(call, job, known, now);
    return undefined;
  }

  /** The output in a status answer of a job that still runs, or that ended as CANCELLED or TIMED_OUT without a cost. */
  inStatus(call: Teller, job: JobRef, answer: UpstreamJob, ending: Ending | undefined): Promise<void> | undefined {
    const { output, status } = answer;
    if (output === undefined || output === null || status === "COMPLETED" || status === "FAILED") return undefined;
    if (isFinal(status) && ending?.costMicroUsd !== null) return undefined;
    const textBytes = bytesOfText(output);
    if (textBytes === 0 && Object.keys(Object(output)).length === 0) return undefined;
    return this.whole(call, job, Array.isArray(output) ? output.length : 1, textBytes);
  }

  whole(call: Teller, job: JobRef, pieces: number, textBytes: number): Promise<void> | undefined {
    const now = Date.now();
    const known = this.#jobs.get(job.admission, now);
    if (!known) return this.#first(call, job, { pieces, textBytes, whole: true }, now);
    const size = Math.max(1, textBytes);
    if (size <= known.wholeTold) return undefined;
    known.whole = { pieces, textBytes };
    this.#promise(call, job, known, now);
    return undefined;
  }

  /** Called before a cancel: the meter must know by then what was handed out. */
  flush(call: Teller, job: JobRef): Promise<void> | undefined {
    const known = this.#jobs.get(job.admission, Date.now());
    return known && this.#tell(call, job, known);
  }

  async #first(
    { meter }: Teller,
    { admission, upstreamId }: JobRef,
    handed: { pieces: number; textBytes: number; whole: boolean },
    now: number,
  ): Promise<void> {
    const wholeTold = handed.whole ? Math.max(1, handed.textBytes) : 0;
    const known = { pieces: 0, textBytes: 0, whole: undefined, wholeTold, toldAt: now, promisedAt: never };
    await meter.handOut(admission, { upstreamId, ...handed });
    // Another request of this job may have stored its own count meanwhile.
    if (!this.#jobs.get(admission, now)) this.#jobs.set(admission, known, now + rememberMs);
  }

  #promise(call: Teller, job: JobRef, known: HandedOutSoFar, now: number): void {
    if (isRecent(known.promisedAt, this.everyMs + lostMs, now)) return;
    known.promisedAt = now;
    const restMs = isRecent(known.toldAt, this.everyMs, now) ? known.toldAt + this.everyMs - now : 0;
    const waited = scheduler.wait(restMs).then(() => this.#tell(call, job, known));
    call.waitUntil(waited.catch(logUnsettled));
  }

  async #tell({ meter }: Teller, { admission, upstreamId }: JobRef, known: HandedOutSoFar): Promise<void> {
    const { pieces, textBytes, whole } = known;
    known.toldAt = Date.now();
    known.promisedAt = never;
    known.pieces = 0;
    known.textBytes = 0;
    known.whole = undefined;
    try {
      if (pieces > 0) await meter.handOut(admission, { upstreamId, pieces, textBytes, whole: false });
      if (whole) {
        await meter.handOut(admission, { upstreamId, ...whole, whole: true });
        known.wholeTold = Math.max(known.wholeTold, 1, whole.textBytes);
      }
    } catch (error) {
      known.pieces += pieces;
      known.textBytes += textBytes;
      known.whole ??= whole;
      throw error;
    }
  }
}

/** Only a chunk's `output` is text; its metrics are not. */
function textOf(chunk: unknown): unknown {
  return typeof chunk === "object" && chunk !== null && "output" in chunk ? chunk.output : chunk;
}

/** Shared by all requests of the isolate. */
export const handedOut = new HandedOut();
