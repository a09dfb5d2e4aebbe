// The one way to pay for a call: admit it, do the work, and if the work fails release the reservation or mark it
// doubtful.
import { Problem } from "../../errors.ts";
import type { AdmitRequest, QuotaHeaders, Replay } from "../quota/metering.ts";
import { isNotTaken } from "../upstream/taken.ts";
import { type Answered, dropBody } from "../upstream/upstream.ts";
import type { JobCall } from "./job-call.ts";

export type Metered<T> =
  | { readonly done: T; readonly quota: QuotaHeaders }
  /** An idempotency key stands for an earlier call. */
  | { readonly replay: Replay };

/**
 * Admits the request, then runs `work`. If `work` returns undefined, or fails before the upstream can have started a
 * job, the reservation is released. If the upstream may have started one, `endLost` is called: by default it marks the
 * admission doubtful, and the meter learns later what became of it.
 */
export async function metered<T>(
  { meter }: Pick<JobCall, "meter">,
  request: AdmitRequest,
  work: (attempt: Attempt) => Promise<T>,
  endLost: (answered: Answered | undefined) => void = () => meter.doubt(request.admission),
): Promise<Metered<T>> {
  const admitted = await meter.admit(request);
  if ("replay" in admitted) return admitted;
  const { admission } = request;
  const attempt = new Attempt();
  try {
    const done = await work(attempt);
    // Awaited: the caller may repeat its call at once, with the same idempotency key.
    if (done === undefined) await meter.release(admission);
    return { done, quota: admitted.quota };
  } catch (error) {
    if (attempt.mayBeTaken(error)) endLost(attempt.answered);
    else meter.release(admission);
    throw error;
  }
}

/** A body that streams upstream. */
export interface Upload {
  /** Settles when all of it was checked and sent, or with what cut it off. */
  readonly sent: Promise<unknown>;
  /** Stops sending. True if the last byte was not sent, so that the upstream never had the whole body. */
  readonly cut: () => boolean;
}

/** The one call upstream that an admission pays for, and what is known of it. */
export class Attempt {
  #isAsked = false;
  #answered: Answered | undefined;
  #upload: Upload | undefined;

  get answered(): Answered | undefined {
    return this.#answered;
  }

  async ask(call: () => Promise<Answered>, upload?: Upload): Promise<Answered> {
    this.#isAsked = true;
    this.#upload = upload;
    this.#answered = await (upload ? preferBodyFault(upload.sent, call) : call());
    return this.#answered;
  }

  /**
   * False if the upstream cannot have started the job: it was not asked, refused it (e.g. 429, 503), or never got the
   * last byte.
   */
  mayBeTaken(error: unknown): boolean {
    if (!this.#isAsked || this.#upload?.cut()) return false;
    if (this.#answered) return !isNotTaken(this.#answered.response.status);
    return !(error instanceof Problem && error.code === "UPSTREAM_DOWN");
  }
}

/** How long after the upstream's answer, or a broken call, the body's own fault may take to show. */
const faultMs = 1_000;

/**
 * If the body itself was faulty (e.g. broken JSON), the caller is told that, and not what the upstream said of half a
 * body.
 */
async function preferBodyFault(sent: Promise<unknown>, call: () => Promise<Answered>): Promise<Answered> {
  const fault = sent.then(
    () => undefined,
    (error: unknown) => (error instanceof Problem && error.code !== "UPSTREAM_UNREACHABLE" ? error : undefined),
  );
  const inTime = () => Promise.race([fault, scheduler.wait(faultMs)]);
  const called = await call().catch(async (error: unknown) => {
    throw (await inTime()) ?? error;
  });
  const own = await inTime();
  if (!own) return called;
  await dropBody(called);
  throw own;
}
