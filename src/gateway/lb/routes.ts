// Load-balancing endpoints for app users: a call is admitted at its stated price, passed on with the server's key, and settled
// when the answer has left.
import { balancedErrors, balancedStatements } from "../../contract/balanced.ts";
import { limits } from "../../contract/limits.ts";
import { type ErrorCode, Problem } from "../../errors.ts";
import { type Passed, passOn } from "../../http/passage.ts";
import { readBounded, tryParseJson } from "../../http/small-body.ts";
import { statedLength } from "../../json/byte-reader.ts";
import { type GatewayRoute, gatewayRoutesFor } from "../gateway-route.ts";
import { newAdmission } from "../jobs/admission-id.ts";
import { payerTerms } from "../jobs/admit-request.ts";
import { type FindUpstream, JobCall, survivesDisconnect } from "../jobs/job-call.ts";
import { setQuota } from "../jobs/quota-headers.ts";
import { asUser, meteredErrors } from "../jobs/routes.ts";
import { usdText } from "../quota/amounts.ts";
import { logRefusedKey, refusalOf } from "../upstream/own-keys.ts";

/** The balancer waits for a worker, and then for its answer; beyond that it has lost the call. */
const limitMs = limits.balanced.strictMs + limits.balanced.requestMs;

export function balancedRoutes(findUpstream: FindUpstream): GatewayRoute[] {
  const route = gatewayRoutesFor((c) => new JobCall(c, findUpstream));
  const statements = balancedStatements({
    path: "/lb/:model/*",
    summary: "Any path of a load-balancing endpoint that the operator opened; metered",
    access: "user",
    errors: [...meteredErrors, "UPSTREAM_REFUSED", ...balancedErrors],
  } as const);
  return statements.map((statement) =>
    route(statement, asUser("lb"), (call) => survivesDisconnect(call, balance(call))),
  );
}

async function balance(call: JobCall): Promise<Response> {
  const { request, target, meter, exchange } = call;
  if (target.model) throw new Problem("INVALID_REQUEST", `${target.name}: not allowed for QB API`);
  const { maxMicroUsd } = target;
  const admission = newAdmission(Date.now());
  const admitted = await meter.admit({
    ...payerTerms(call),
    admission,
    operation: "lb",
    reserveMicroUsd: maxMicroUsd,
    inputBytes: statedLength(request.headers) ?? 0,
    hasNotice: false,
    ttlMs: limitMs,
    retentionMs: limitMs,
    webhook: undefined,
    idempotency: undefined,
  });
  const askedAt = Date.now();
  /** Told with the payer's next call, before that is judged: its place is free again. */
  const end = (isServed: boolean) => {
    const costMicroUsd = isServed ? maxMicroUsd : 0;
    exchange.costMicroUsd = costMicroUsd;
    const [seenAt, status] = [Date.now(), isServed ? "COMPLETED" : "FAILED"] as const;
    const ending = { admission, upstreamId: null, status, costMicroUsd, askedAt, seenAt, completedAt: seenAt };
    meter.bind(ending);
  };
  let answered: Response | undefined;
  try {
    const { response, ended } = await passOnWithKey(call, (answer) => {
      answered = answer;
    });
    const isServed = response.status < 400;
    exchange.logAfter = ended;
    call.waitUntil(ended.then(() => end(isServed)));
    if (isServed) response.headers.set("X-Cost", usdText(maxMicroUsd));
    if ("quota" in admitted) setQuota(response.headers, admitted.quota);
    return response;
  } catch (error) {
    const code = error instanceof Problem ? error.code : "UPSTREAM_UNREACHABLE";
    // A worker served what we refuse or lost of its answer, and was at work if the client left after its request. For a
    // call that was cut before its answer it is unknown whether a worker got it; one that takes too long costs nothing, as
    // the balancer's own 524.
    const wasGiven = request.signal.aborted && code !== "INVALID_REQUEST";
    if (answered ? answered.status < 400 : wasGiven) end(true);
    else if (code !== "UPSTREAM_UNREACHABLE") meter.release(admission);
    else meter.doubt(admission);
    throw error;
  }
}

async function passOnWithKey(
  { request, upstream, config, target }: JobCall,
  note: (answer: Response) => void,
): Promise<Passed> {
  const { base, key, send } = upstream.balancer(config.upstream);
  const wanted = request.headers.get("X-Runpod-Worker-Id");
  const passed = await passOn({
    request,
    base,
    mount: `/lb/${target.name}`,
    own: { Authorization: `Bearer ${key}`, ...(wanted !== null && { "X-Runpod-Worker-Id": wanted }) },
    send: async (url, init) => {
      const answer = await send(url, init);
      note(answer);
      return answer;
    },
    limitMs,
    // A real balancer may pass our key on to workers, so their answers are searched for it. The embedded one does not.
    secrets: config.upstream.kind === "remote" ? upstream.keySearch : undefined,
  });
  const { response } = passed;
  // A worker's own words are its caller's business alone.
  if (response.status < 400 || response.headers.has("X-Runpod-Worker-Id")) return passed;
  return { ...passed, response: await balancerRefusal(response) };
}

const saidBytes = 16 * 1024;
const codes: Readonly<Record<string, ErrorCode>> = {
  "no workers available": "NO_WORKERS",
  worker_timeout: "WORKER_BUSY",
  affinity_worker_gone: "WORKER_GONE",
};

/** A refusal of the balancer's own, in our shape. Any other answer is what it is. */
async function balancerRefusal(response: Response): Promise<Response> {
  const { status, headers } = response;
  if (refusalOf(status) !== undefined) {
    logRefusedKey(status);
    throw new Problem("UPSTREAM_REFUSED", "The model service refused the gateway.");
  }
  if (status === 524) throw new Problem("WORKER_TOO_SLOW", "The worker took too long.");
  if (!/^application\/json\b/i.test(headers.get("Content-Type") ?? "")) return response;
  const bytes = await readBounded(response.body, saidBytes);
  const said = bytes && (tryParseJson(bytes) as { error?: string; code?: string } | null | undefined);
  const own = balancedErrors.find((code) => code === said?.code);
  const code = own ?? codes[said?.error ?? ""] ?? (status === 404 ? "MODEL_NOT_FOUND" : undefined);
  if (code) throw new Problem(code, said?.error ?? "There is no such endpoint.");
  return new Response(bytes ?? null, response);
}
