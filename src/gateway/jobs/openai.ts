// OpenAI's routes, relayed: a call checked by the schema of its route, the answer as it comes, settled by what it says it cost.
import type { Context } from "hono";
import { limits } from "../../contract/limits.ts";
import { asProblem, Problem, renderOpenAiProblem } from "../../errors.ts";
import type { OpenAiRoute } from "../../models/model.ts";
import { newAdmission } from "../admission.ts";
import { claimsOf } from "../claims.ts";
import { type Answered, callUpstream } from "../upstream.ts";
import { readObject } from "../upstream-answer.ts";
import { formatUsd, logUnsettled } from "./answer.ts";
import { type Idempotency, readIdempotency, refuseOtherBody } from "./idempotency-key.ts";
import { type GivenAnswer, keepAnswer, keptBytes, repeatAnswer } from "./kept-answer.ts";
import { type OpenAiCall, openCall, type Passed } from "./openai-call.ts";
import { outlive } from "./outlive.ts";
import { type Bill, SeenStream } from "./seen-stream.ts";
import { costOf } from "./settling.ts";
import { admit, passed, payerTerms, setQuota, tookNothing } from "./submit.ts";
import type { JobEnv } from "./target.ts";

const routePattern = /^v1(\/[a-z0-9_-]{1,64}){1,4}$/;
const methods: Readonly<Record<OpenAiRoute, "GET" | "POST">> = { "chat/completions": "POST", models: "GET" };
/** Generation may take its time before the first byte. */
const answerWaitMs = limits.waitMs.max;
const jsonType = "application/json";

export async function relayOpenAi(c: Context<JobEnv>): Promise<Response> {
  const route = c.req.path.replace(/^\/v2\/[^/]+\/openai\//, "");
  if (!routePattern.test(route) || !isServed(c, route.slice("v1/".length))) {
    throw new Problem("NOT_FOUND", `${c.get("target").name} has no such route: ${c.req.method} ${route}`);
  }
  const segments = [c.get("target").name, "openai", ...route.split("/")];
  if (c.req.method === "POST") return outlive(c, relayPost(c, segments));
  const upstream = c.get("upstream");
  const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, waitMs: answerWaitMs });
  return c.json(await readObject(answered));
}

/** An endpoint that the operator opened at a price may have any route; a model of the catalog has those that it lists. */
function isServed(c: Context<JobEnv>, route: string): boolean {
  const { model } = c.get("target");
  if (!model) return true;
  return model.openAiRoutes.some((known) => known === route && methods[known] === c.req.method);
}

async function relayPost(c: Context<JobEnv>, segments: readonly string[]): Promise<Response> {
  const call = await openCall(c);
  const admission = newAdmission(Date.now());
  const idempotency = await readIdempotency(c.req.raw.headers, [segments.slice(1).join("/"), segments[0] ?? ""], call);
  const admitted = await admit(c, {
    ...payerTerms(c),
    admission,
    operation: "openai",
    reserveMicroUsd: call.reserveMicroUsd,
    inputBytes: call.inputBytes(),
    hasNotice: false,
    webhook: undefined,
    idempotency,
    ttlMs: answerWaitMs,
    retentionMs: answerWaitMs,
  });
  if ("replay" in admitted) {
    await refuseOtherBody(call, admitted.replay);
    return repeatAnswer(c.env.IMAGES, admitted.replay.admission, Date.now());
  }
  const response = await new OpenAiRelay(c, call, admission, idempotency).relay(segments);
  setQuota(response.headers, admitted);
  return response;
}

/** How a call ended. */
interface End extends Bill {
  readonly status: "COMPLETED" | "FAILED";
}

/** One admitted call, from its relay to its settlement. */
class OpenAiRelay {
  readonly #c: Context<JobEnv>;
  readonly #call: OpenAiCall;
  readonly #admission: string;
  readonly #idempotency: Idempotency | undefined;
  readonly #askedAt = Date.now();

  constructor(c: Context<JobEnv>, call: OpenAiCall, admission: string, idempotency: Idempotency | undefined) {
    this.#c = c;
    this.#call = call;
    this.#admission = admission;
    this.#idempotency = idempotency;
  }

  async relay(segments: readonly string[]): Promise<Response> {
    const { body, sent, cut } = this.#call.relayed({
      digested: this.#idempotency !== undefined,
      accept: (passed) => this.#amend(passed),
    });
    let answered: Answered | undefined;
    try {
      answered = await passed(sent, () =>
        callUpstream(this.#c.get("upstream"), {
          method: "POST",
          segments,
          repeatable: false,
          waitMs: answerWaitMs,
          accept: "application/json, text/event-stream",
          body,
          ...(sent && { sent }),
          ...(this.#leaving && { signal: this.#leaving }),
        }),
      );
      return isEventStream(answered) ? this.#relayEvents(answered) : await this.#relayWhole(answered);
    } catch (error) {
      if (tookNothing(error, answered, cut)) this.#after(this.#c.get("meter")().release(this.#admission));
      else this.#fail(error, answered);
      throw error;
    }
  }

  /** A caller that leaves ends the call, unless its key says that it comes back for the answer. */
  get #leaving(): AbortSignal | undefined {
    return this.#idempotency ? undefined : this.#c.req.raw.signal;
  }

  /** A large body turned out to ask for so much. */
  async #amend(passed: Passed): Promise<void> {
    const terms = claimsOf(this.#c.var);
    const answer = await this.#c
      .get("meter")()
      .amend(this.#admission, { terms, ...passed })
      .catch(() => {
        throw new Problem("METER_UNAVAILABLE", "Your quota cannot be checked at the moment.", { "Retry-After": "1" });
      });
    if ("code" in answer) throw new Problem(answer.code, answer.detail);
  }

  /** An answer that was lost may have cost something: what was reserved is assumed. */
  #fail(error: unknown, answered: Answered | undefined): void {
    const problem = asProblem(error);
    const { requestId } = this.#c.get("exchange");
    const status = answered && !answered.response.ok ? "FAILED" : "COMPLETED";
    const bytes = new TextEncoder().encode(JSON.stringify(renderOpenAiProblem(problem, requestId)));
    this.#after(this.#settle({ status, costMicroUsd: null }, { status: problem.status, contentType: jsonType, bytes }));
  }

  async #relayWhole(answered: Answered): Promise<Response> {
    const answer = await readObject(answered);
    const cost = costOf(answer, this.#c.get("target"));
    const bytes = new TextEncoder().encode(JSON.stringify(answer));
    const given = { status: 200, contentType: jsonType, bytes };
    this.#after(this.#settle({ status: "COMPLETED", costMicroUsd: cost ?? null }, given));
    const headers = { "Content-Type": jsonType };
    if (cost === undefined) return new Response(bytes, { headers });
    this.#c.get("exchange").costMicroUsd = cost;
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
      const bill = stream.bill(this.#c.get("target"), this.#call.inputBytes());
      const bytes = stream.kept();
      return this.#settle({ status: "COMPLETED", ...bill }, bytes && { status: 200, contentType, bytes });
    });
    this.#after(watched);
    return new Response(client, { headers });
  }

  /** With a key the answer is kept first: where the call is over, its answer is there. */
  async #settle(end: End, answer: GivenAnswer | undefined): Promise<unknown> {
    const admission = this.#admission;
    if (this.#idempotency) await keepAnswer(this.#c.env.IMAGES, admission, answer);
    const seenAt = Date.now();
    return this.#c
      .get("meter")()
      .settle({ admission, upstreamId: null, ...end, askedAt: this.#askedAt, seenAt, completedAt: seenAt });
  }

  #after(work: Promise<unknown>): void {
    this.#c.executionCtx.waitUntil(work.catch(logUnsettled));
  }
}

function isEventStream({ response }: Answered): boolean {
  return response.ok && /^text\/event-stream\b/i.test(response.headers.get("Content-Type") ?? "");
}
