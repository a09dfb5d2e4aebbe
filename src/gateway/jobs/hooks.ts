// The upstream's notice of a job's end, proven by its path. It is a knock: what it says of the job is asked for with our key.
import { Hono } from "hono";
import * as z from "zod";
import { ownOrigin } from "../../config.ts";
import type { Operation } from "../../contract/operation.ts";
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import { bodyErrors, bodyProblem } from "../../wire/body-problem.ts";
import type { SecretSearch } from "../../wire/secret-search.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { meterById } from "../meter-stub.ts";
import { keySearchOf, logOwnKey } from "../own-keys.ts";
import type { MeteredJob } from "../quota/metering.ts";
import { openBody, parseBody } from "../request-body.ts";
import { usualTimes } from "../upstream.ts";
import { answerLimitBytes } from "../upstream-answer.ts";
import { asker } from "./ask-upstream.ts";
import { handlesOf, isRef } from "./handle.ts";
import { readFacts } from "./large-answer.ts";
import { PayersMeter } from "./payers-meter.ts";
import type { FindImages, FindUpstream } from "./routes.ts";
import { settle } from "./settling.ts";

const noticeSchema = z.looseObject({ id: z.string().refine(isRef) });

export function hookRoutes(findImages: FindImages, findUpstream: FindUpstream): Hono<GatewayEnv> {
  return new Hono<GatewayEnv>().post("/hooks/:hook", (c) => takeNotice(c, findImages, findUpstream));
}

/** Of the notice only the id counts, and only where the job has none yet: who made it up changes nothing. */
async function takeNotice(c: GatewayContext, findImages: FindImages, findUpstream: FindUpstream): Promise<Response> {
  const config = c.get("config");
  const hook = handlesOf(config).verifyHook(c.req.param("hook") ?? "");
  if (!hook) throw new Problem("NOT_FOUND", "There is no such route.");
  const checked = noticeSchema.safeParse(await readNotice(c.req.raw, keySearchOf(config)));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected a job");
  const { id } = checked.data;
  const { admission } = hook;
  const meter = meterOf(c, hook.meter);
  const job = await meter.job(admission);
  const isUnproven = job?.isGuessed === true || job?.upstreamId === null;
  if (!job || (!isUnproven && job.upstreamId !== id)) throw new Problem("JOB_NOT_FOUND", "job not found");
  if (isOver(job)) return received(c);
  // The relay names the job itself. Until then nobody knows whether the notice is of this one.
  if (isUnproven && job.endedAt === null) {
    await meter.lookAgain({ admission, upstreamId: id });
    return received(c);
  }

  const ask = asker(config, findImages(c).links, findUpstream(c, hook.meter), ownOrigin(config, c.req.url));
  const askedAt = Date.now();
  const asked = await ask({ model: job.model, upstreamId: id, owner: job.owner, admission, first: admission });
  if (typeof asked !== "object" || !isFinal(asked.status)) {
    await meter.lookAgain({ admission, upstreamId: id });
    return received(c);
  }
  const { status, costMicroUsd, completedAt, media, body = "" } = asked;
  const kept = isUnproven ? undefined : media;
  const ending = {
    admission,
    upstreamId: id,
    status,
    costMicroUsd,
    completedAt,
    media: kept,
    isUnproven,
    isUntold: true,
  };
  await settle(meter, { ...ending, askedAt, seenAt: Date.now() }, () => body);
  return received(c);
}

/** Of a job that failed the notice may tell of its retry. */
function isOver({ endedAt, isAssumed, status }: MeteredJob): boolean {
  return endedAt !== null && !isAssumed && (status === "COMPLETED" || status === "CANCELLED");
}

function received(c: GatewayContext): Response {
  return c.json({ received: true });
}

/** The meter that the path names, whoever pays there. */
function meterOf(c: GatewayContext, id: string): PayersMeter {
  const stub = () => meterById(c.env, id);
  return new PayersMeter(id, stub, (work) => c.executionCtx.waitUntil(work));
}

/** A notice carries input and output: one that is as large as they may be is held by nobody. */
async function readNotice(request: Request, keySearch: SecretSearch): Promise<unknown> {
  const body = await openBody(request, answerLimitBytes);
  if ("whole" in body) {
    if (!keySearch.finds(body.whole)) return parseBody(body.whole);
    logOwnKey();
    throw new Problem("INVALID_REQUEST", "body: expected a job");
  }
  const { job, fault } = await readFacts(body.large.source, { times: usualTimes, keySearch });
  if (fault === undefined) return job;
  throw bodyProblem(fault === "sink-gone" || fault === "stopped" ? "source-gone" : fault, answerLimitBytes);
}

export const hookOperations: readonly Operation[] = [
  {
    method: "post",
    path: "/hooks/{hook}",
    summary: "The upstream's notice of a job's end",
    access: "upstream",
    body: noticeSchema,
    answer: z.object({ received: z.literal(true) }),
    errors: [...bodyErrors, "INVALID_REQUEST", "NOT_FOUND", "JOB_NOT_FOUND"],
  },
];
