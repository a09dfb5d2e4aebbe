// What the meter's alarm asks the upstream about a job that nobody follows, and what it understands of the answer.
import type { Config } from "../../config.ts";
import { isFinal, type JobState, jobStates } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import { findModel } from "../../models/index.ts";
import type { Links } from "../images/links.ts";
import type { AskUpstream } from "../quota/metering.ts";
import { callUpstream, type Upstream } from "../upstream.ts";
import { readJob } from "../upstream-answer.ts";
import { handlesOf } from "./handle.ts";
import { endingOf } from "./settling.ts";

export function asker(config: Config, links: Links, upstream: Upstream): AskUpstream {
  return async ({ model, ref, owner, admission }) => {
    try {
      const segments = [model, "status", ref];
      const response = await callUpstream(upstream, { method: "GET", segments, repeatable: true });
      const answer = await readJob(response, upstream.key);
      const status = jobStates.find((state) => state === answer.status);
      if (status === undefined) return "unreachable";
      if (!isFinal(status)) return { status, costMicroUsd: null, completedAt: 0 };
      const known = findModel(model);
      const target = { name: model, model: known, maxMicroUsd: 0 };
      const ending = endingOf(answer, target, { ref, admission }, Date.now());
      const id = await handlesOf(config).mint({ owner, model }, { ref, admission });
      const { costMicroUsd = null, completedAt = Date.now() } = ending ?? {};
      const ended = { owner, model, known, ref, admission, ending };
      const seen = await links.present(answer, ended, config.publicUrl, Date.now());
      const body = JSON.stringify({ ...seen.answer, id });
      return { status: status satisfies JobState, costMicroUsd, completedAt, media: seen.kept, body };
    } catch (error) {
      return error instanceof Problem && error.code === "JOB_NOT_FOUND" ? "unknown" : "unreachable";
    }
  };
}
