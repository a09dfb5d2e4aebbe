// OpenAI's routes, relayed: a call checked by the schema of its route, the answer as it comes, settled by what it says it cost.
import { limits } from "../../contract/limits.ts";
import { asProblem, Problem, renderOpenAiProblem } from "../../errors.ts";
import type { OpenAiRoute } from "../../models/model.ts";
import { newAdmission } from "../admission.ts";
import { claimsOf } from "../claims.ts";
import { type Answered, callUpstream } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { payerTerms } from "./admit-request.ts";
import { formatUsd } from "./answer.ts";
import { type Idempotency, readIdempotency, refuseOtherBody } from "./idempotency-key.ts";
import { type JobCall, outlive } from "./job-call.ts";
import { type GivenAnswer, keepAnswer, keptBytes, repeatAnswer } from "./kept-answer.ts";
import { type Attempt, metered } from "./metered.ts";
import { type OpenAiCall, openCall } from "./openai-call.ts";
import { logUnsettled } from "./payers-meter.ts";
import { setQuota } from "./quota-headers.ts";
import { type Bill, SeenStream } from "./seen-stream.ts";
import { costOf } from "./settling.ts";

const routePattern = /^v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const methods: Readonly<Record<OpenAiRoute, "GET" | "POST">> = { "chat/completions": "POST", models: "GET" };
/** Generation may take its time before the first byte. */
const answerWaitMs = limits.waitMs.max;
const jsonType = "application/json";

export async function relayOpenAi(call: JobCall): Promise<Response> {
  const { request, target, upstream } = call;
  const route = call.path.replace(/^\/v2\/[^/]+\/openai\//, "");
  if (!routePattern.test(route) || !isServed(call, route.slice("v1/".length))) {
    throw new Problem("NOT_FOUND", `${target.name} has no such route: ${request.method} ${route}`);
  }
  const segments = [target.name, "openai", ...route.split("/")];
  if (request.method === "POST") return outlive(call, relayPost(call, segments));
  const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, waitMs: answerWaitMs });
  return Response.json(await readObject(answered));
}

/** An endpoint that the operator opened at a price may have any route; a model of the catalog has those that it lists. */
function isServed({ target: { model }, request }: JobCall, route: string): boolean {
  if (!model) return true;
  return model.openAiRoutes.some((known) => known === route && methods[known] === request.method);
}

async function relayPost(call: JobCall, segments: readonly string[]): Promise<Response> {
  const asked = await openCall(call);
  const admission = newAdmission(Date.now());
  const { headers } = call.request;
  const idempotency = await readIdempotency(headers, [segments.slice(1).join("/"), segments[0] ?? ""], asked);
  const request = {
    ...payerTerms(call),
    admission,
    operation: "openai",
    reserveMicroUsd: asked.reserveMicroUsd,
    inputBytes: asked.inputBytes(),
    hasNotice: false,
    webhook: undefined,
    idempotency,
    ttlMs: answerWaitMs,
    retentionMs: answerWaitMs,
  } as const;
  const relay = new OpenAiRelay(call, asked, admission, idempotency);
  const relayed = await metered(
    call,
    request,
    (attempt) => relay.relay(segments, attempt),
    (error, answered) => relay.fail(error, answered),
  );
  if ("replay" in relayed) {
    await refuseOtherBody(asked, relayed.replay);
    return repeatAnswer(call.env.IMAGES, relayed.replay.admission, Date.now());
  }
  setQuota(relayed.done.headers, relayed.quota);
  return relayed.done;
}

/** How a call ended. */
interface End extends Bill {
  readonly status: "COMPLETED" | "FAILED";
}

/** One admitted call, from its relay to its settlement. */
class OpenAiRelay {
  readonly #call: JobCall;
  readonly #asked: OpenAiCall;
  readonly #admission: string;
  readonly #idempotency: Idempotency | undefined;
  readonly #askedAt = Date.now();

  constructor(call: JobCall, asked: OpenAiCall, admission: string, idempotency: Idempotency | undefined) {
    this.#call = call;
    this.#asked = asked;
    this.#admission = admission;
    this.#idempotency = idempotency;
  }

  async relay(segments: readonly string[], attempt: Attempt): Promise<Response> {
    const { meter, upstream } = this.#call;
    const { body, upload } = this.#asked.relayed({
      digested: this.#idempotency !== undefined,
      accept: (passed) => meter.amend(this.#admission, { terms: claimsOf(this.#call), ...passed }),
    });
    const accept = "application/json, text/event-stream";
    const leaving = this.#leaving && { signal: this.#leaving };
    const sending = { method: "POST", segments, repeatable: false, waitMs: answerWaitMs, accept, body } as const;
    const answered = await attempt.ask(upstream, { ...sending, ...leaving }, upload);
    return isEventStream(answered) ? this.#relayEvents(answered) : await this.#relayWhole(answered);
  }

  /** A caller that leaves ends the call, unless its key says that it comes back for the answer. */
  get #leaving(): AbortSignal | undefined {
    return this.#idempotency ? undefined : this.#call.request.signal;
  }

  /** An answer that was lost may have cost something: what was reserved is assumed. Without one nobody knows. */
  fail(error: unknown, answered: Answered | undefined): void {
    const problem = asProblem(error);
    const { requestId } = this.#call.exchange;
    const bytes = new TextEncoder().encode(JSON.stringify(renderOpenAiProblem(problem, requestId)));
    const given = { status: problem.status, contentType: jsonType, bytes };
    const status = answered?.response.ok ? "COMPLETED" : "FAILED";
    this.#after(answered ? this.#settle({ status, costMicroUsd: null }, given) : this.#doubt(given));
  }

  async #doubt(answer: GivenAnswer): Promise<void> {
    if (this.#idempotency) await keepAnswer(this.#call.env.IMAGES, this.#admission, answer);
    this.#call.meter.doubt(this.#admission);
  }

  async #relayWhole(answered: Answered): Promise<Response> {
    const answer = await readObject(answered);
    const cost = costOf(answer, this.#call.target);
    const bytes = new TextEncoder().encode(JSON.stringify(answer));
    const given = { status: 200, contentType: jsonType, bytes };
    this.#after(this.#settle({ status: "COMPLETED", costMicroUsd: cost ?? null }, given));
    const headers = { "Content-Type": jsonType };
    if (cost === undefined) return new Response(bytes, { headers });
    this.#call.exchange.costMicroUsd = cost;
    return new Response(bytes, { headers: { ...headers, "X-Cost": formatUsd(cost) } });
  }

  /** One branch goes to the client untouched, the other is looked at for what it cost. */
  #relayEvents({ response, clock }: Answered): Response {
    clock.stop();
    const contentType = "text/event-stream";
    const headers = { "Content-Type": contentType, "Cache-Control": "no-cache" };
    const [client, seen] = (response.body ?? new Response("").body)?.tee() ?? [];
    if (!client || !seen) throw new TypeError("A body can be read twice");
    const watched = new SeenStream(this.#idempotency ? keptBytes : 0).read(seen, this.#leaving).then((stream) => {
      const bill = stream.bill(this.#call.target, this.#asked.inputBytes());
      const bytes = stream.kept();
      return this.#settle({ status: "COMPLETED", ...bill }, bytes && { status: 200, contentType, bytes });
    });
    this.#after(watched);
    return new Response(client, { headers });
  }

  /** With a key the answer is kept first: where the call is over, its answer is there. */
  async #settle(end: End, answer: GivenAnswer | undefined): Promise<unknown> {
    const admission = this.#admission;
    if (this.#idempotency) await keepAnswer(this.#call.env.IMAGES, admission, answer);
    const seenAt = Date.now();
    const at = { askedAt: this.#askedAt, seenAt, completedAt: seenAt };
    return this.#call.meter.settle({ admission, upstreamId: null, ...end, ...at });
  }

  #after(work: Promise<unknown>): void {
    this.#call.waitUntil(work.catch(logUnsettled));
  }
}

function isEventStream({ response }: Answered): boolean {
  return response.ok && /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");
}
