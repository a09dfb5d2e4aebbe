// `/admin/selfcheck`: each binding is written and read, and the model service is asked with each key. For the operator alone.
import * as z from "zod";
import type { Config } from "../../config.ts";
import type { CheckedObject, ObjectChecked } from "../../durable/checked-object.ts";
import { answersWithinMs, remote } from "../../durable/remote.ts";
import { nameOfFault } from "../../errors.ts";
import { inTime } from "../../isolate/in-time.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { SecretSearch } from "../../json/secret-search.ts";
import { models } from "../../models/index.ts";
import type { Call } from "../call.ts";
import { type GatewayRoute, gatewayRoute } from "../gateway-route.ts";
import type { FindUpstream } from "../jobs/job-call.ts";
import { controlName } from "../operator-settings/control-reader.ts";
import { budgetName } from "../quota/budget.ts";
import { findBucket } from "../uploads/bucket.ts";
import { Breaker } from "../upstream/breaker.ts";
import { logRefusedKey, refusalOf } from "../upstream/own-keys.ts";
import { callUpstream, dropBody, type Upstream } from "../upstream/upstream.ts";

const checkSchema = z
  .object({
    name: z.string().describe("A binding, or the model service with one of its keys, the newest first."),
    ok: z.boolean(),
    ms: z.int(),
    place: z.string().optional().describe("Where the object is, by the three letters of the place."),
    problem: z.string().optional(),
  })
  .meta({ id: "Check" });
const selfcheckSchema = z
  .object({
    ok: z.boolean().describe("Whether every check is."),
    place: z.string().optional().describe("Where this request was answered."),
    upstream: z.string().describe('The origin of the model service, or "embedded".'),
    uploads: z.boolean().describe("Whether there is a bucket for them."),
    allowedOrigins: z.array(z.string()),
    checks: z.array(checkSchema),
  })
  .meta({ id: "Selfcheck" });

type Check = z.output<typeof checkSchema>;
type Found = Pick<Check, "place" | "problem">;

/** All checks run at once, and none takes longer than this. */
const checkMs = 6_000;
/** KV takes no shorter lifetime. */
const kvSeconds = 60;
const name = "selfcheck";
const notWritten = { problem: "what was read is not what was written" };

/** They stand behind `operatorOnly`. */
export function selfcheckRoutes(findUpstream: FindUpstream): GatewayRoute[] {
  return [
    gatewayRoute(
      {
        method: "get",
        path: "/admin/selfcheck",
        summary: "Write and read every binding, and reach the model service with each key",
        access: "operator",
        answer: selfcheckSchema,
        errors: ["UNAUTHORIZED"],
      },
      [],
      async (call) => Response.json(await selfcheck(call, findUpstream), { headers: { "Cache-Control": "no-store" } }),
    ),
  ];
}

async function selfcheck(call: Call, findUpstream: FindUpstream): Promise<z.output<typeof selfcheckSchema>> {
  const { config, env, request } = call;
  const written = crypto.randomUUID();
  const bucket = findBucket(env);
  const upstream = findUpstream(call, name);
  const checked = (binding: string, look: () => Promise<Found>) => check(binding, config, look);
  const checks = await Promise.all([
    checked("IMAGES", () => checkKv(env.IMAGES, written)),
    ...(bucket ? [checked("MEDIA", () => checkBucket(bucket, written))] : []),
    checked("FLOOD", () => checkShield(env.FLOOD)),
    ...objectsOf(call).map(([binding, ask]) => checked(binding, () => checkObject(ask, written, call))),
    ...upstream.keys.map((key, index) => checked(nameOfKey(index), () => checkUpstream({ ...upstream, keys: [key] }))),
  ]);
  const place = placeOf(request);
  return {
    ok: checks.every(({ ok }) => ok),
    ...(place !== undefined && { place }),
    upstream: config.upstream.kind === "remote" ? new URL(config.upstream.url).origin : "embedded",
    uploads: bucket !== undefined,
    allowedOrigins: [...config.allowedOrigins],
    checks,
  };
}

async function check(name: string, config: Config, look: () => Promise<Found>): Promise<Check> {
  const begunAt = Date.now();
  const found = await inTime(checkMs, look()).catch((error: unknown): Found => ({ problem: sayFault(error, config) }));
  return { name, ok: found.problem === undefined, ms: Date.now() - begunAt, ...found };
}

/** In the binding's own words, which say that a day's limit is reached; not where they hold what nobody may read. */
function sayFault(error: unknown, config: Config): string {
  const words = error instanceof Error ? error.message : "";
  // All of them are searched: what is cut short may end in the middle of a secret.
  const isSecret = secretsOf(config).finds(new TextEncoder().encode(words));
  return words === "" || isSecret ? nameOfFault(error) : words.slice(0, maxWords);
}
const maxWords = 200;

const secretsOf = memoizeBy(
  ({ upstreamKeys, management, signingSecrets, adminToken, appSecret, platformKeys }: Config) => {
    const keys = [...upstreamKeys, ...(management?.keys ?? []), ...platformKeys.keys()];
    return new SecretSearch([...keys, ...signingSecrets, adminToken, ...(appSecret === undefined ? [] : [appSecret])]);
  },
);

async function checkKv(kv: KVNamespace, written: string): Promise<Found> {
  const key = `${name}/${written}`;
  await kv.put(key, written, { expirationTtl: kvSeconds });
  const read = await kv.get(key);
  await kv.delete(key);
  return read === written ? {} : notWritten;
}

async function checkBucket(bucket: R2Bucket, written: string): Promise<Found> {
  const key = `${name}/${written}`;
  await bucket.put(key, written);
  const read = await (await bucket.get(key))?.text();
  await bucket.delete(key);
  return read === written ? {} : notWritten;
}

async function checkShield(shield: RateLimit): Promise<Found> {
  const { success } = await shield.limit({ key: name });
  return success ? {} : { problem: "lets nobody through" };
}

type Ask = (written: string, asksPlace: boolean) => Promise<ObjectChecked>;

/** Of the objects that there is one of, that one; of the others one that nobody else uses. */
function objectsOf({ env, config }: Call): [binding: string, ask: Ask][] {
  const ask = (namespace: DurableObjectNamespace<CheckedObject>, object = name): Ask => {
    const stub = remote<CheckedObject>(namespace, object, answersWithinMs.needed);
    return (written, asksPlace) => stub.selfcheck(written, asksPlace);
  };
  const { USER_METER, BUDGET, CONTROL, JOB_MEDIA, SHARED_REQUEST, ENDPOINT_QUEUE, ACCOUNT } = env;
  const platform: [string, Ask][] = [
    ["ENDPOINT_QUEUE", ask(ENDPOINT_QUEUE)],
    ["ACCOUNT", ask(ACCOUNT)],
  ];
  return [
    ["USER_METER", ask(USER_METER)],
    ["BUDGET", ask(BUDGET, budgetName)],
    ["CONTROL", ask(CONTROL, controlName)],
    ["JOB_MEDIA", ask(JOB_MEDIA)],
    ["SHARED_REQUEST", ask(SHARED_REQUEST)],
    // In front of a real service nobody asks them.
    ...(config.upstream.kind === "embedded" ? platform : []),
  ];
}

/** A developer's machine is no place of the network, and asks nobody outside. */
async function checkObject(ask: Ask, written: string, { request, config }: Call): Promise<Found> {
  const { ok, place } = await ask(written, !config.local && placeOf(request) !== undefined);
  return { ...(place !== undefined && { place }), ...(!ok && notWritten) };
}

function placeOf({ cf }: Request): string | undefined {
  return typeof cf?.["colo"] === "string" ? cf["colo"] : undefined;
}

function nameOfKey(index: number): string {
  return index === 0 ? "upstream" : `upstream, older key ${index}`;
}

/** By a question that makes no job and costs nothing. Neither the others' failures count, nor does this one for them. */
async function checkUpstream(upstream: Upstream): Promise<Found> {
  const times = { ...upstream.times, headMs: answersWithinMs.asked, retryMs: 0 };
  const [model] = models;
  const asked = { method: "GET", segments: [model?.id ?? "", "health"], repeatable: false } as const;
  const answered = await callUpstream({ ...upstream, times, breaker: new Breaker() }, asked);
  await dropBody(answered);
  const { status, ok } = answered.response;
  if (ok) return {};
  const refusal = refusalOf(status);
  if (refusal !== undefined) logRefusedKey(status);
  return { problem: refusal ?? `answered ${status}` };
}
