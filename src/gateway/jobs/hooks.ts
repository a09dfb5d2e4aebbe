// The upstream's notice of a job's end, proven by its path. It is believed only for the job that the path names.
import { Hono } from "hono";
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { findModel } from "../../models/index.ts";
import type { Remote } from "../../wire/remote.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import type { Images } from "../images/images.ts";
import type { Metering } from "../quota/metering.ts";
import { parseBody, readBody } from "../request-body.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { handlesOf } from "./handle.ts";
import { endingOf } from "./settling.ts";

/** The notice carries input and output. */
const maxNoticeBytes = 2 * limits.runsyncPayloadBytes + 64 * 1024;
const noticeSchema = z.looseObject({ id: z.string().max(128), status: z.string().max(32) });

export function hookRoutes(findImages: (c: GatewayContext) => Images): Hono<GatewayEnv> {
  return new Hono<GatewayEnv>().post("/hooks/:hook", (c) => takeNotice(c, findImages(c)));
}

async function takeNotice(c: GatewayContext, images: Images): Promise<Response> {
  const hook = await handlesOf(c.get("config")).verifyHook(c.req.param("hook") ?? "");
  if (!hook) throw new Problem("NOT_FOUND", "There is no such route.");
  const checked = noticeSchema.safeParse(parseBody(await readBody(c.req.raw, maxNoticeBytes)));
  if (!checked.success) throw new Problem("INVALID_REQUEST", "body: expected a job");
  const { USER_METER } = c.env;
  const meter = USER_METER.get(USER_METER.idFromString(hook.meter)) as unknown as Remote<Metering>;
  const job = await meter.job(hook.admission);
  if (!job) throw new Problem("JOB_NOT_FOUND", "job not found");

  const { input: _, webhook: __, ...answer } = checked.data;
  const target = { name: job.model, model: findModel(job.model), maxMicroUsd: job.reservedMicroUsd };
  const handle = { ref: checked.data.id, admission: hook.admission };
  if (job.ref === null) await meter.bind(hook.admission, handle.ref);
  else if (job.ref !== handle.ref) throw new Problem("JOB_NOT_FOUND", "job not found");
  const ending = endingOf(answer as UpstreamJob, target, handle, Date.now());
  const origin = c.get("config").publicUrl ?? new URL(c.req.url).origin;
  const ended = { ...handle, owner: job.owner, model: job.model, known: target.model, ending };
  const seen = await images.links.present(answer as UpstreamJob, ended, origin, Date.now());
  const settled = ending && (await meter.settle({ ...ending, media: seen.kept }));
  if (settled?.wantsNotice) {
    const id = await handlesOf(c.get("config")).mint({ owner: job.owner, model: job.model }, handle);
    await meter.notify(hook.admission, JSON.stringify({ ...seen.answer, id }));
  }
  return c.json({ received: true });
}

export const hookOperations: readonly Operation[] = [
  {
    ...{ method: "post", path: "/hooks/{hook}", summary: "The upstream's notice of a job's end", access: "upstream" },
    ...{ body: noticeSchema, answer: z.object({ received: z.literal(true) }) },
    errors: ["NOT_FOUND", "JOB_NOT_FOUND", "INVALID_REQUEST", "INVALID_JSON", "PAYLOAD_TOO_LARGE"],
  },
];
