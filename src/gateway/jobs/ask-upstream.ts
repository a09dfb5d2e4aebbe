// What the meter's alarm asks the upstream about a job that nobody follows, and what it understands of the answer.
import type { Config } from "../../config.ts";
import { isFinal, type JobState, jobStates } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import { findModel } from "../../models/index.ts";
import type { Links } from "../images/links.ts";
import type { AskUpstream } from "../quota/metering.ts";
import { callUpstream, type Upstream } from "../upstream.ts";
import { openJob } from "../upstream-answer.ts";
import { handlesOf } from "./handle.ts";
import { readFacts } from "./large-answer.ts";
import { endingOf } from "./settling.ts";

/** What is kept for an owner who did not ask in time, and told to a webhook; of a larger answer all but its output. */
const keptBytes = 4 * 1024 * 1024;

export function asker(config: Config, links: Links, upstream: Upstream, origin: string | undefined): AskUpstream {
  return async ({ model, upstreamId: ref, owner, admission }) => {
    try {
      const segments = [model, "status", ref];
      const signal = AbortSignal.timeout(upstream.times.headMs + upstream.times.bodyMs);
      const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, signal });
      const { askedAt } = answered;
      const opened = await openJob(answered, keptBytes);
      const answer = "whole" in opened ? opened.whole : (await readFacts(opened.large, upstream)).job;
      const status = jobStates.find((state) => state === answer?.status);
      if (answer === undefined || status === undefined) return "unreachable";
      if (!isFinal(status)) return { status, costMicroUsd: null, completedAt: 0 };
      const known = findModel(model);
      const target = { name: model, model: known, maxMicroUsd: 0 };
      const seenAt = Date.now();
      const ending = endingOf(answer, target, { ref, admission }, { askedAt, seenAt });
      const id = await handlesOf(config).mint({ owner, model }, { ref, admission });
      const { costMicroUsd = null, completedAt = seenAt } = ending ?? {};
      const ended = { owner, model, known, ref, admission, ending, partly: "large" in opened };
      const seen = await links.present(answer, ended, origin, seenAt);
      const { output, ...others } = seen.answer;
      const body = JSON.stringify({ ...others, ...("whole" in opened && { output }), id });
      return { status: status satisfies JobState, costMicroUsd, completedAt, media: seen.kept, body };
    } catch (error) {
      return error instanceof Problem && error.code === "JOB_NOT_FOUND" ? "unknown" : "unreachable";
    }
  };
}
