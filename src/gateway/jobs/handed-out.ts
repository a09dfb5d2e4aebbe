// What a caller was handed of a job's output before its end: the payer's meter hears of the first of it before that leaves.
import { isFinal } from "../../contract/states.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import { isRecent } from "../../wire/recent.ts";
import type { Ending } from "../quota/metering.ts";
import { bytesOfText } from "../text-bytes.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import type { Handle } from "./handle.ts";
import type { JobCall } from "./job-call.ts";
import { logUnsettled } from "./payers-meter.ts";

interface Handed {
  /** Chunks that the meter has not been told of. */
  pieces: number;
  textBytes: number;
  /** The longest output that a status has said. */
  whole: { readonly pieces: number; readonly textBytes: number } | undefined;
  wholeTold: number;
  toldAt: number;
  /** Somebody who waits for it tells the meter of the rest a while later. */
  promisedAt: number;
}

const rememberedCharacters = 512 * 1024;
const rememberMs = 60 * 60 * 1000;
/** Who promised to flush may have died with its request. */
const lostMs = 1_000;
const never = Number.NEGATIVE_INFINITY;

type Teller = Pick<JobCall, "meter" | "waitUntil">;

/** A promise only where there is something to wait for: the first output of a job that this isolate hands out. */
export class HandedOut {
  /** Tests set their own. */
  everyMs = 1_000;
  readonly #jobs = new BoundedMemory<Handed>(rememberedCharacters);

  /** Chunks: what they hold comes on top of those before. */
  chunks(call: Teller, job: Handle, chunks: readonly unknown[]): Promise<void> | undefined {
    if (chunks.length === 0) return undefined;
    return this.pieces(call, job, chunks.length, bytesOfText(chunks.map(textOf)));
  }

  pieces(call: Teller, job: Handle, pieces: number, textBytes: number): Promise<void> | undefined {
    const now = Date.now();
    const known = this.#jobs.get(job.admission, now);
    if (!known) return this.#first(call, job, { pieces, textBytes, whole: false }, now);
    known.pieces += pieces;
    known.textBytes += textBytes;
    this.#promise(call, job, known, now);
    return undefined;
  }

  /** The output that an answer has before its job is done, or of one that came to no good end and says no cost. */
  inStatus(call: Teller, job: Handle, answer: UpstreamJob, ending: Ending | undefined): Promise<void> | undefined {
    const { output, status } = answer;
    if (output === undefined || output === null || status === "COMPLETED" || status === "FAILED") return undefined;
    if (isFinal(status) && ending?.costMicroUsd !== null) return undefined;
    const textBytes = bytesOfText(output);
    if (textBytes === 0 && Object.keys(Object(output)).length === 0) return undefined;
    return this.whole(call, job, Array.isArray(output) ? output.length : 1, textBytes);
  }

  whole(call: Teller, job: Handle, pieces: number, textBytes: number): Promise<void> | undefined {
    const now = Date.now();
    const known = this.#jobs.get(job.admission, now);
    if (!known) return this.#first(call, job, { pieces, textBytes, whole: true }, now);
    const size = Math.max(1, textBytes);
    if (size <= known.wholeTold) return undefined;
    known.whole = { pieces, textBytes };
    this.#promise(call, job, known, now);
    return undefined;
  }

  /** Before what may end the job: the meter is to know what was handed out until then. */
  flush(call: Teller, job: Handle): Promise<void> | undefined {
    const known = this.#jobs.get(job.admission, Date.now());
    return known && this.#tell(call, job, known);
  }

  async #first(
    { meter }: Teller,
    { admission, ref }: Handle,
    handed: { pieces: number; textBytes: number; whole: boolean },
    now: number,
  ): Promise<void> {
    const wholeTold = handed.whole ? Math.max(1, handed.textBytes) : 0;
    const known = { pieces: 0, textBytes: 0, whole: undefined, wholeTold, toldAt: now, promisedAt: never };
    await meter.handOut(admission, { upstreamId: ref, ...handed });
    // Others may have come first meanwhile.
    if (!this.#jobs.get(admission, now)) this.#jobs.set(admission, known, now + rememberMs);
  }

  #promise(call: Teller, job: Handle, known: Handed, now: number): void {
    if (isRecent(known.promisedAt, this.everyMs + lostMs, now)) return;
    known.promisedAt = now;
    const restMs = isRecent(known.toldAt, this.everyMs, now) ? known.toldAt + this.everyMs - now : 0;
    const waited = scheduler.wait(restMs).then(() => this.#tell(call, job, known));
    call.waitUntil(waited.catch(logUnsettled));
  }

  async #tell({ meter }: Teller, { admission, ref }: Handle, known: Handed): Promise<void> {
    const { pieces, textBytes, whole } = known;
    known.toldAt = Date.now();
    known.promisedAt = never;
    known.pieces = 0;
    known.textBytes = 0;
    known.whole = undefined;
    try {
      if (pieces > 0) await meter.handOut(admission, { upstreamId: ref, pieces, textBytes, whole: false });
      if (whole) {
        await meter.handOut(admission, { upstreamId: ref, ...whole, whole: true });
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

/** What a chunk's metrics say of the worker is no text. */
function textOf(chunk: unknown): unknown {
  return typeof chunk === "object" && chunk !== null && "output" in chunk ? chunk.output : chunk;
}

/** One an isolate. */
export const handedOut = new HandedOut();
