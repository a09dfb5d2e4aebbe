// One admitted OpenAI call, from its relay to its settlement: the answer as it comes, paid by what it says it cost.
import { limits } from "../../contract/limits.ts";
import { asProblem, renderOpenAiProblem } from "../../errors.ts";
import { usdText } from "../quota/amounts.ts";
import { claimsOf } from "../quota/claims.ts";
import type { Ending } from "../quota/metering.ts";
import type { Answered } from "../upstream/upstream.ts";
import { readObject } from "../upstream/upstream-answer.ts";
import type { OpenAiCall } from "../upstream/upstream-client.ts";
import { GuardedEvents } from "./guarded-events.ts";
import type { JobCall } from "./job-call.ts";
import { type GivenAnswer, keepAnswer, keptBytes } from "./kept-answer.ts";
import type { Attempt } from "./metered.ts";
import type { OpenAiBody } from "./openai-body.ts";
import { logUnsettled } from "./payers-meter.ts";
import { costOf } from "./settling.ts";
import { StreamUsage } from "./stream-usage.ts";

const jsonType = "application/json";
const eventsType = "text/event-stream";
const encoder = new TextEncoder();
/** When the model service has sent everything, the client has this long to read the rest. */
const lastBytesMs = 60_000;
/** A call that was told of is taken to go on for `limits.waitMs.max`: so often that two tellings may be lost. */
const goesOnMs = limits.waitMs.max / 3;

interface Admitted {
  readonly admission: string;
  /** The caller may come back for the answer with the same idempotency key. */
  readonly isKeyed: boolean;
}

type End = Pick<Ending, "status" | "costMicroUsd" | "assumedMicroUsd" | "askedAt">;

export class OpenAiRelay {
  readonly #call: JobCall;
  readonly #body: OpenAiBody;
  readonly #admitted: Admitted;
  readonly #askedAt = Date.now();
  #inputBytes: number;
  #problem: unknown;
  #goingOn: ReturnType<typeof setInterval> | null = null;

  constructor(call: JobCall, body: OpenAiBody, admitted: Admitted) {
    this.#call = call;
    this.#body = body;
    this.#admitted = admitted;
    this.#inputBytes = body.statedBytes;
  }

  async relay(attempt: Attempt, asked: Pick<OpenAiCall, "method" | "path" | "waitMs">): Promise<Response> {
    const { admission, isKeyed } = this.#admitted;
    this.#goingOn = setInterval(() => this.#after(this.#tellGoesOn()), goesOnMs);
    const { body, upload } = this.#body.relayed({
      digested: isKeyed,
      accept: (checked) => {
        this.#inputBytes = checked.inputBytes;
        return this.#call.meter.amend(admission, { terms: claimsOf(this.#call), ...checked });
      },
    });
    const accept = `${jsonType}, ${eventsType}`;
    const leaving = this.#leaving && { signal: this.#leaving };
    const sent = { ...asked, accept, body, ...(upload && { sent: upload.sent }), ...leaving };
    try {
      const answered = await attempt.ask(() => this.#call.upstream.openAi(sent), upload);
      return isEventStream(answered) ? this.#relayEvents(answered) : await this.#relayWhole(answered);
    } catch (error) {
      this.#problem = error;
      clearInterval(this.#goingOn);
      throw error;
    }
  }

  /** A caller that leaves ends the call, unless its key says that it comes back for the answer. */
  get #leaving(): AbortSignal | undefined {
    return this.#admitted.isKeyed ? undefined : this.#call.request.signal;
  }

  /**
   * The answer was lost, but the call may have cost something. If the upstream answered, or the caller left while it
   * worked, the reservation is charged as assumed. Otherwise it is unknown whether the upstream got the call: the
   * admission is marked doubtful.
   */
  endLost(answered: Answered | undefined): void {
    const problem = asProblem(this.#problem);
    const bytes = encoder.encode(JSON.stringify(renderOpenAiProblem(problem, this.#call.exchange.requestId)));
    const given = { status: problem.status, contentType: jsonType, bytes };
    const status = answered && !answered.response.ok ? "FAILED" : "COMPLETED";
    const end = { status, costMicroUsd: null, askedAt: answered?.askedAt ?? this.#askedAt } as const;
    if (answered || this.#leaving?.aborted) this.#after(this.#settle(end, given));
    else this.#after(this.#keep(given).then(() => this.#call.meter.doubt(this.#admitted.admission)));
  }

  async #relayWhole(answered: Answered): Promise<Response> {
    const answer = await readObject(answered);
    const cost = costOf(answer, this.#call.target);
    const bytes = encoder.encode(JSON.stringify(answer));
    const { askedAt } = answered;
    const given = { status: 200, contentType: jsonType, bytes };
    this.#after(this.#settle({ status: "COMPLETED", costMicroUsd: cost ?? null, askedAt }, given));
    const response = new Response(bytes, { headers: { "Content-Type": jsonType } });
    if (cost === undefined) return response;
    this.#noteCost(cost);
    response.headers.set("X-Cost", usdText(cost));
    return response;
  }

  /** Looked at for what it cost while it goes to the client. */
  #relayEvents({ response, clock, askedAt, upstream }: Answered): Response {
    clock.stop();
    const headers = { "Content-Type": eventsType };
    const events = new GuardedEvents(response.body ?? new Blob().stream(), upstream.keySearch, this.#leaving);
    this.#after(events.done);
    const seen = new StreamUsage(this.#admitted.isKeyed ? keptBytes : 0);
    const watched = events.read(seen);
    this.#after(watched.then(() => events.doneWithin(lastBytesMs)));
    const settled = watched.then(() => {
      const bytes = seen.kept();
      const given = bytes && { status: 200, contentType: eventsType, bytes };
      const bill = seen.bill(this.#call.target, this.#inputBytes);
      this.#noteCost(bill.costMicroUsd ?? bill.assumedMicroUsd);
      return this.#settle({ status: "COMPLETED", askedAt, ...bill }, given);
    });
    this.#call.exchange.logAfter = watched;
    this.#after(settled);
    return new Response(events.client, { headers });
  }

  #noteCost(costMicroUsd: number | undefined): void {
    if (costMicroUsd !== undefined) this.#call.exchange.costMicroUsd = costMicroUsd;
  }

  /** Else its place would be given to another after the longest time that an answer may take to begin. */
  #tellGoesOn(): Promise<unknown> {
    const { admission } = this.#admitted;
    const now = Date.now();
    return this.#call.meter.settle({
      admission,
      upstreamId: null,
      status: "IN_PROGRESS",
      costMicroUsd: null,
      askedAt: now,
      seenAt: now,
      completedAt: now,
    });
  }

  /** Keeps the answer before settling: once the meter says that the call is over, its answer must be there. */
  async #settle(end: End, given: GivenAnswer | undefined): Promise<unknown> {
    await this.#keep(given);
    clearInterval(this.#goingOn);
    const { admission } = this.#admitted;
    const seenAt = Date.now();
    return this.#call.meter.settle({ admission, upstreamId: null, ...end, seenAt, completedAt: seenAt });
  }

  async #keep(given: GivenAnswer | undefined): Promise<void> {
    if (this.#admitted.isKeyed) await keepAnswer(this.#call.env.IMAGES, this.#admitted.admission, given);
  }

  #after(work: Promise<unknown>): void {
    this.#call.waitUntil(work.catch(logUnsettled));
  }
}

function isEventStream({ response }: Answered): boolean {
  return response.ok && /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");
}
