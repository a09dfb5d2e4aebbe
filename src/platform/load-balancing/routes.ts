// Load-balancing endpoints: any request goes to a healthy worker and back at once, without a queue and without a second try.
import type { Config } from "../../config.ts";
import { balancedErrors, balancedStatements } from "../../contract/balanced.ts";
import { limits } from "../../contract/limits.ts";
import { Problem } from "../../errors.ts";
import { passOn } from "../../http/passage.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { authenticate } from "../auth.ts";
import type { PlatformCall } from "../call.ts";
import { findEndpoint, noEndpoint } from "../endpoints.ts";
import { platformRoute } from "../platform-route.ts";
import { queueName } from "../queue/queue-name.ts";
import { type Affinity, Pool, type Worker } from "./pool.ts";

const most = 1000;
/** Of every endpoint that was called lately, by its account and name. */
const poolsOf = memoizeBy((_: Config) => new Map<string, Pool>());
const { noWorkerMs, strictMs, requestMs } = limits.balanced;
const pauseMs = 50;

export const balancedPath = "/platform/lb/:endpoint/*";

export const balancedRoutes = balancedStatements({
  path: balancedPath,
  summary: "Any path of a load-balancing endpoint's workers, by any method",
  access: "platform",
  errors: ["UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "UNAVAILABLE", ...balancedErrors],
} as const).map((statement) => platformRoute(statement, [authenticate], balance));

/** Passes the request on to a worker, behind `authenticate`. */
export async function balance(call: PlatformCall): Promise<Response> {
  const { request, exchange } = call;
  const name = call.params["endpoint"] ?? "";
  exchange.model = name;
  const affinity = affinityOf(request.headers.get("X-Runpod-Worker-Id") ?? "");
  const worker = chosenAtOnce(call, name, affinity) ?? (await workerFor(call, name, affinity));
  worker.inFlight += 1;
  worker.served += 1;
  const passing = passOn({
    request,
    base: worker.url,
    mount: `/platform/lb/${name}`,
    own: {},
    send: (url, init) => fetch(url, init),
    limitMs: requestMs,
  });
  const ended = passing.then(({ ended }) => ended).catch(() => {});
  call.waitUntil(ended.finally(() => (worker.inFlight -= 1)));
  try {
    const { response } = await passing;
    response.headers.set("X-Runpod-Worker-Id", worker.id);
    return response;
  } catch (error) {
    // The next caller is sent elsewhere; this one is told, and not served twice.
    const isBroken = error instanceof Problem && error.code === "UPSTREAM_UNREACHABLE";
    if (isBroken && !request.signal.aborted) worker.isSuspect = true;
    throw error;
  }
}

/** `strict-resume` would start a worker that was ended: nobody is started here. */
function affinityOf(value: string): Affinity | undefined {
  const [, strict, worker] = /^(strict(?:-resume)? +)?([\w-]{1,64})$/.exec(value.trim()) ?? [];
  return worker === undefined ? undefined : { worker, strict: strict !== undefined };
}

/** A worker that is known to be healthy; what is known is asked anew beside the call. */
function chosenAtOnce(call: PlatformCall, name: string, affinity: Affinity | undefined): Worker | undefined {
  const pools = poolsOf(call.config);
  const key = queueName(call.account, name);
  const pool = pools.get(key);
  const now = Date.now();
  const known = pool?.isKnown(now) ? pool.choose(affinity) : undefined;
  if (known && pool?.isDue(now)) {
    call.waitUntil(pool.renew(() => workerUrls(call, name)).catch(() => pools.delete(key)));
  }
  return known;
}

/** Waits for a worker that is healthy. */
async function workerFor(call: PlatformCall, name: string, affinity: Affinity | undefined): Promise<Worker> {
  const pools = poolsOf(call.config);
  const key = queueName(call.account, name);
  const pool = pools.get(key) ?? new Pool(call.config.signingSecrets[0] ?? "");
  const renew = () => pool.renew(() => workerUrls(call, name));
  const forget = () => pools.delete(key);
  if (pools.size >= most && !pools.has(key)) pools.clear();
  pools.set(key, pool);
  const over = AbortSignal.timeout(affinity?.strict ? strictMs : noWorkerMs);
  for (; !over.aborted && !call.request.signal.aborted; await scheduler.wait(pauseMs)) {
    if (pool.isDue(Date.now())) {
      await renew().catch((error: unknown) => {
        forget();
        throw error;
      });
    }
    if (!pool.isKnown(Date.now())) continue;
    const worker = pool.choose(affinity);
    if (worker) return worker;
    if (affinity?.strict && !pool.has(affinity.worker)) throw new Problem("WORKER_GONE", "affinity_worker_gone");
  }
  if (affinity?.strict) throw new Problem("WORKER_BUSY", "worker_timeout");
  throw new Problem("NO_WORKERS", "no workers available");
}

async function workerUrls(call: PlatformCall, name: string): Promise<readonly string[]> {
  const endpoint = await findEndpoint(call, name, true);
  if (!endpoint) throw noEndpoint();
  if (!endpoint.workerUrls) throw new Problem("INVALID_REQUEST", "not allowed for QB API");
  return endpoint.workerUrls;
}
