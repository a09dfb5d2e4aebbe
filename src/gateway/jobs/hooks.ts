// The upstream's notice of a job's end, proven by its path. It is believed only for the job that the path names.
import { type Context, Hono } from "hono";
import * as z from "zod";
import { ownOrigin } from "../../config.ts";
import type { Operation } from "../../contract/operation.ts";
import { isFinal } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import { findModel } from "../../models/index.ts";
import { bodyProblem } from "../../wire/body-problem.ts";
import type { Remote } from "../../wire/remote.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import type { Images } from "../images/images.ts";
import type { Metering, UpstreamAnswer } from "../quota/metering.ts";
import { openBody, parseBody } from "../request-body.ts";
import { type Upstream, usualTimes } from "../upstream.ts";
import { answerLimitBytes, type UpstreamJob } from "../upstream-answer.ts";
import { asker } from "./ask-upstream.ts";
import { handlesOf, isRef } from "./handle.ts";
import { readFacts } from "./large-answer.ts";
import type { FindImages, FindUpstream } from "./routes.ts";
import { endingOf } from "./settling.ts";
import type { JobEnv } from "./target.ts";

const noticeSchema = z.looseObject({ id: z.string().refine(isRef), status: z.string().max(32) });

export function hookRoutes(findImages: FindImages, findUpstream: FindUpstream): Hono<GatewayEnv> {
  return new Hono<GatewayEnv>().post("/hooks/:hook", (c) =>
    takeNotice(c, findImages(c), () => findUpstream(c as unknown as Context<JobEnv>)),
  );
}

async function takeNotice(c: GatewayContext, images: Images, upstream: () => Upstream): Promise<Response> {
  const config = c.get("config");
  const hook = await handlesOf(config).verifyHook(c.req.param("hook") ?? "");
  if (!hook) throw new Problem("NOT_FOUND", "There is no such route.");
  const notice = await readNotice(c.req.raw);
  const checked = noticeSchema.safeParse(notice.job);
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected a job");
  const { USER_METER } = c.env;
  const meter = USER_METER.get(USER_METER.idFromString(hook.meter)) as unknown as Remote<Metering>;
  const job = await meter.job(hook.admission);
  if (!job) throw new Problem("JOB_NOT_FOUND", "job not found");

  const { input: _, webhook: __, ...answer } = checked.data;
  const handle = { ref: checked.data.id, admission: hook.admission };
  const { upstreamId } = job;
  if (upstreamId === null) await meter.bind([{ admission: hook.admission, upstreamId: handle.ref }]);
  else if (upstreamId !== handle.ref) throw new Problem("JOB_NOT_FOUND", "job not found");
  const known = findModel(job.model);
  const target = { name: job.model, model: known, maxMicroUsd: job.reservedMicroUsd };
  const ending = endingOf(answer as UpstreamJob, target, handle, Date.now());
  if (!ending) return c.json({ received: true });

  const origin = ownOrigin(config, c.req.url);
  const owned = { ...handle, owner: job.owner, model: job.model };
  const id = await handlesOf(config).mint(owned, handle);
  const present = (partly: boolean) =>
    images.links.present(answer as UpstreamJob, { ...owned, known, ending, partly }, origin, Date.now());
  const inFull = async () => {
    const seen = await present(false);
    return { ...ending, media: seen.kept, body: JSON.stringify({ ...seen.answer, id }) };
  };
  // Of a part the output has passed by: the upstream is asked, as the meter's alarm would, and else the part is believed.
  const inPart = async () => {
    const ask = asker({ ...config, publicUrl: origin }, images.links, upstream());
    const { output, ...others } = answer as UpstreamJob;
    const asked = await ask({ ...owned, upstreamId: handle.ref });
    const said = { ...ending, body: JSON.stringify({ ...others, id }) };
    if (!isEnd(asked)) return { ...said, media: (await present(true)).kept };
    return { ...said, ...asked, costMicroUsd: asked.costMicroUsd ?? said.costMicroUsd };
  };
  const { body, ...told } = await (notice.isPart ? inPart() : inFull());
  const settled = await meter.settle(told);
  if (settled.wantsNotice) await meter.notify(settled.admission, body);
  return c.json({ received: true });
}

function isEnd(answer: UpstreamAnswer): answer is Exclude<UpstreamAnswer, string> {
  return typeof answer === "object" && isFinal(answer.status);
}

interface Notice {
  readonly job: unknown;
  /** It was too large to hold: all but its output is here. */
  readonly isPart: boolean;
}

/** A notice carries input and output: one that is as large as they may be is held by nobody. */
async function readNotice(request: Request): Promise<Notice> {
  const body = await openBody(request, answerLimitBytes);
  if ("whole" in body) return { job: parseBody(body.whole), isPart: false };
  const { job, fault } = await readFacts(body.large.source, { times: usualTimes });
  if (fault === undefined) return { job, isPart: true };
  throw bodyProblem(fault === "sink-gone" || fault === "stopped" ? "source-gone" : fault, answerLimitBytes);
}

export const hookOperations: readonly Operation[] = [
  {
    ...{ method: "post", path: "/hooks/{hook}", summary: "The upstream's notice of a job's end", access: "upstream" },
    ...{ body: noticeSchema, answer: z.object({ received: z.literal(true) }) },
    errors: ["NOT_FOUND", "JOB_NOT_FOUND", "INVALID_REQUEST", "INVALID_JSON", "PAYLOAD_TOO_LARGE"],
  },
];
