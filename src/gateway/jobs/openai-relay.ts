// One admitted OpenAI call, from its relay to its settlement: the answer as it comes, paid by what it says it cost.
import { asProblem, renderOpenAiProblem } from "../../errors.ts";
import { claimsOf } from "../claims.ts";
import type { Ending } from "../quota/metering.ts";
import type { Answered, Call } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { formatUsd } from "./answer.ts";
import { GuardedEvents } from "./guarded-events.ts";
import type { JobCall } from "./job-call.ts";
import { type GivenAnswer, keepAnswer, keptBytes } from "./kept-answer.ts";
import type { Attempt } from "./metered.ts";
import type { OpenAiBody } from "./openai-body.ts";
import { logUnsettled } from "./payers-meter.ts";
import { SeenStream } from "./seen-stream.ts";
import { costOf } from "./settling.ts";

const jsonType = "application/json";
const eventsType = "text/event-stream";
const encoder = new TextEncoder();
/** What is left when the model service has sent all is the client's to take in so long. */
const lastBytesMs = 60_000;

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

  constructor(call: JobCall, body: OpenAiBody, admitted: Admitted) {
    this.#call = call;
    this.#body = body;
    this.#admitted = admitted;
    this.#inputBytes = body.statedBytes;
  }

  async relay(attempt: Attempt, call: Omit<Call, "body" | "sent" | "signal" | "accept">): Promise<Response> {
    const { admission, isKeyed } = this.#admitted;
    const { body, upload } = this.#body.relayed({
      digested: isKeyed,
      accept: (passed) => {
        this.#inputBytes = passed.inputBytes;
        return this.#call.meter.amend(admission, { terms: claimsOf(this.#call), ...passed });
      },
    });
    const accept = `${jsonType}, ${eventsType}`;
    const signal = this.#leaving && { signal: this.#leaving };
    try {
      const answered = await attempt.ask(this.#call.upstream, { ...call, accept, body, ...signal }, upload);
      return isEventStream(answered) ? this.#relayEvents(answered) : await this.#relayWhole(answered);
    } catch (error) {
      this.#problem = error;
      throw error;
    }
  }

  /** A caller that leaves ends the call, unless its key says that it comes back for the answer. */
  get #leaving(): AbortSignal | undefined {
    return this.#admitted.isKeyed ? undefined : this.#call.request.signal;
  }

  /**
   * An answer that was lost may have cost something: what was reserved is assumed. Where there was none nobody knows
   * whether the upstream had the call, but where its caller left: then it had.
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
    response.headers.set("X-Cost", formatUsd(cost));
    return response;
  }

  /** Looked at for what it cost while it goes to the client. */
  #relayEvents({ response, clock, askedAt, upstream }: Answered): Response {
    clock.stop();
    const headers = { "Content-Type": eventsType, "Cache-Control": "no-cache" };
    const events = new GuardedEvents(response.body ?? new Blob().stream(), upstream.keySearch, this.#leaving);
    this.#after(events.done);
    const seen = new SeenStream(this.#admitted.isKeyed ? keptBytes : 0);
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

  /** The answer is kept first: where the meter says that the call is over, its answer is there. */
  async #settle(end: End, given: GivenAnswer | undefined): Promise<unknown> {
    await this.#keep(given);
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
