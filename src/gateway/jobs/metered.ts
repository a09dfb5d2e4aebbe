// The one way that a call is paid for: admitted, worked on, and given back or left in doubt where the work fails.
import { Problem } from "../../errors.ts";
import type { AdmitRequest, QuotaHeaders, Replay } from "../quota/metering.ts";
import { isNotTaken } from "../taken.ts";
import { type Answered, type Call, callUpstream, dropBody, type Upstream } from "../upstream.ts";
import type { JobCall } from "./job-call.ts";

export type Metered<T> =
  | { readonly done: T; readonly quota: QuotaHeaders }
  /** An idempotency key stands for an earlier call. */
  | { readonly replay: Replay };

/**
 * Undefined is for work that came to nothing without asking the upstream: it is given back, too. What may have been taken is
 * left in doubt, but where the caller knows more of an answer that the upstream gave.
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
    // Its caller may come again at once, with the same idempotency key.
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
  /** Sends no more of it: whether that came before its last byte, so that nobody has all of it. */
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

  async ask(upstream: Upstream, call: Omit<Call, "sent">, upload?: Upload): Promise<Answered> {
    this.#isAsked = true;
    this.#upload = upload;
    this.#answered = upload
      ? await ownFaultFirst(upload.sent, () => callUpstream(upstream, { ...call, sent: upload.sent }))
      : await callUpstream(upstream, call);
    return this.#answered;
  }

  /** False where the upstream said that it took nothing, was never asked, or never had all of the body. */
  mayBeTaken(error: unknown): boolean {
    if (!this.#isAsked || this.#upload?.cut()) return false;
    if (this.#answered) return !isNotTaken(this.#answered.response.status);
    return !(error instanceof Problem && error.code === "UPSTREAM_DOWN");
  }
}

/** How long after the upstream's answer, or a broken call, the body's own fault may take to show. */
const faultMs = 1_000;

/** A body that was cut off because of a fault of its own is answered with that fault, whatever the upstream made of it. */
async function ownFaultFirst(sent: Promise<unknown>, call: () => Promise<Answered>): Promise<Answered> {
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
