// The upstream's notice of a job's end. Its path proves which job it is for. Its content is not believed: it only makes
// us ask the upstream for the job's status, with our key.
import * as z from "zod";
import { ownOrigin } from "../../config.ts";
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import { bodyProblem } from "../../http/body-problem.ts";
import type { SecretSearch } from "../../json/secret-search.ts";
import type { Call } from "../call.ts";
import { type GatewayRoute, gatewayRoute } from "../gateway-route.ts";
import { imagesOf } from "../media/images.ts";
import { meterById } from "../quota/meter-stub.ts";
import type { MeteredJob } from "../quota/metering.ts";
import { keySearchOf, logOwnKey } from "../upstream/own-keys.ts";
import { defaultTimes } from "../upstream/upstream.ts";
import { answerLimitBytes } from "../upstream/upstream-answer.ts";
import { handlesOf, isUpstreamId } from "./handle.ts";
import type { FindUpstream } from "./job-call.ts";
import { readFacts } from "./large-answer.ts";
import { PayersMeter } from "./payers-meter.ts";
import { statusPoller } from "./poll-upstream.ts";
import { openBody, parseBody } from "./request-body.ts";
import { settle } from "./settling.ts";

const noticeSchema = z.looseObject({ id: z.string().refine(isUpstreamId) });

export function hookRoutes(findUpstream: FindUpstream): GatewayRoute[] {
  return [
    gatewayRoute(
      {
        method: "post",
        path: "/hooks/:hook",
        summary: "The upstream's notice of a job's end",
        access: "upstream",
        body: noticeSchema,
        answer: z.object({ received: z.literal(true) }),
        errors: ["NOT_FOUND", "JOB_NOT_FOUND"],
      },
      [],
      async (call) => {
        await takeNotice(call, findUpstream);
        return Response.json({ received: true });
      },
    ),
  ];
}

/**
 * Only the notice's `id` is used, and only if the job has no id yet. A forged notice therefore changes no price and no
 * output.
 */
async function takeNotice(call: Call, findUpstream: FindUpstream): Promise<void> {
  const { config, env, request } = call;
  const hook = handlesOf(config).verifyHook(call.params["hook"] ?? "");
  if (!hook) throw new Problem("NOT_FOUND", "There is no such route.");
  const checked = noticeSchema.safeParse(await readNotice(request, keySearchOf(config)));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected a job");
  const { id: upstreamId } = checked.data;
  const { admission } = hook;
  const meter = meterOf(call, hook.meter);
  const job = await meter.job(admission);
  const isUnproven = job?.isGuessed === true || job?.upstreamId === null;
  if (!job || (!isUnproven && job.upstreamId !== upstreamId)) throw new Problem("JOB_NOT_FOUND", "job not found");
  if (isOver(job)) return;
  // The relay will tell the true id. Until then the notice may be of another job, so its end is not settled.
  if (isUnproven && job.endedAt === null) return meter.lookAgain({ admission, upstreamId });

  const { links } = imagesOf(config, env);
  const ask = statusPoller(config, links, findUpstream(call, hook.meter), ownOrigin(config, request.url));
  const askedAt = Date.now();
  const asked = await ask({ model: job.model, upstreamId, owner: job.owner, admission, first: admission, isUnproven });
  if (typeof asked !== "object" || !isFinal(asked.status)) return meter.lookAgain({ admission, upstreamId });
  const { status, costMicroUsd, completedAt, media, body = "" } = asked;
  const ending = {
    admission,
    upstreamId,
    status,
    costMicroUsd,
    completedAt,
    media: isUnproven ? undefined : media,
    isUnproven,
    isUntold: true,
  };
  await settle(meter, { ...ending, askedAt, seenAt: Date.now() }, () => body);
}

/** A FAILED job is not over for a notice: the notice may tell of its retry. */
function isOver({ endedAt, isAssumed, status }: MeteredJob): boolean {
  return endedAt !== null && !isAssumed && (status === "COMPLETED" || status === "CANCELLED");
}

/** The meter that the path names by its object id; its payer is not known here. */
function meterOf(call: Call, id: string): PayersMeter {
  const stub = () => meterById(call.env, id);
  return new PayersMeter(id, stub, (work) => call.waitUntil(work));
}

/** A notice carries the job's input and output, so it may be too large to hold: then it is scanned as it streams. */
async function readNotice(request: Request, keySearch: SecretSearch): Promise<unknown> {
  const body = await openBody(request, answerLimitBytes);
  if ("whole" in body) {
    if (!keySearch.finds(body.whole)) return parseBody(body.whole);
    logOwnKey();
    throw new Problem("INVALID_REQUEST", "body: expected a job");
  }
  const { job, fault } = await readFacts(body.large.source, { times: defaultTimes, keySearch });
  if (fault === undefined) return job;
  throw bodyProblem(fault === "sink-gone" || fault === "stopped" ? "source-gone" : fault, answerLimitBytes);
}
