// Polls the upstream outside a request: for the meter's alarm, and after a notice. Reads a job's end out of its status.
import type { Config } from "../../config.ts";
import { isFinal, isJobState, type JobState } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import { findModel } from "../../models/index.ts";
import type { EndedJob, Links, Presented } from "../media/links.ts";
import { keptBytes } from "../quota/kept-result.ts";
import type { AskedJob, AskUpstream, DescribeEnd, LargeAnswers, UpstreamAnswer } from "../quota/upstream-poll.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { openJob, type UpstreamJob } from "../upstream/upstream-answer.ts";
import { UpstreamClient } from "../upstream/upstream-client.ts";
import { handlesOf } from "./handle.ts";
import { jobOf, readFacts, scanLarge } from "./large-answer.ts";
import { endingOf } from "./settling.ts";

interface PollerDeps {
  readonly config: Config;
  readonly links: Links;
  readonly upstream: Upstream;
  readonly origin: string | undefined;
}

/**
 * How much of an answer is held if it is not streamed into a store. Of a larger one everything but its output is read.
 */
const held = { wholeBytes: keptBytes, turn: async () => {} };

export function statusPoller(
  config: Config,
  links: Links,
  upstream: Upstream,
  origin: string | undefined,
): AskUpstream {
  return async (job, large) => {
    try {
      const signal = AbortSignal.timeout(upstream.times.headMs + upstream.times.bodyMs);
      const answered = await new UpstreamClient(upstream, job.model).status(job.upstreamId, signal);
      const poll = new Poll({ config, links, upstream, origin }, job, answered.askedAt);
      const opened = await openJob(answered, large ? undefined : held);
      if ("whole" in opened) return await poll.whole(opened.whole, false);
      await large?.turn();
      return await poll.streamed(opened.large, large?.keep);
    } catch (error) {
      return error instanceof Problem && error.code === "JOB_NOT_FOUND" ? "unknown" : "unreachable";
    }
  };
}

/** The id is the owner's: a webhook tells of the job that its submit was answered with. */
export function endDescriber(config: Config): DescribeEnd {
  return ({ owner, model, upstreamId, first }, status) =>
    JSON.stringify({ id: handlesOf(config).mint({ owner, model }, { upstreamId, admission: first }), status });
}

class Poll {
  readonly #deps: PollerDeps;
  readonly #job: Omit<EndedJob, "ending">;
  readonly #askedAt: number;
  readonly #handle: string;

  constructor(deps: PollerDeps, { model, upstreamId, owner, admission, first, isUnproven }: AskedJob, askedAt: number) {
    this.#deps = deps;
    this.#job = { owner, model, known: findModel(model), upstreamId, admission, isUnproven };
    this.#askedAt = askedAt;
    this.#handle = handlesOf(deps.config).mint({ owner, model }, { upstreamId, admission: first });
  }

  /** `partly`: of its output only what was seen of it is known. */
  async whole(answer: UpstreamJob | undefined, partly: boolean): Promise<UpstreamAnswer> {
    if (!answer || !isJobState(answer.status)) return "unreachable";
    if (!isFinal(answer.status)) return going(answer.status);
    const seenAt = Date.now();
    const ended = this.#ended(answer, seenAt);
    const seen = await this.#deps.links.present(answer, { ...ended, partly }, this.#deps.origin, seenAt);
    const body = partly ? this.#withoutOutput(seen) : JSON.stringify({ ...seen.answer, id: this.#handle });
    return { ...endOf(answer.status, ended, seenAt), media: seen.kept, body };
  }

  /** An answer that is too large to hold: streamed into `keep` as its owner would get it, and scanned on the way. */
  async streamed(source: ByteSource, keep: LargeAnswers["keep"]): Promise<UpstreamAnswer> {
    const { links, upstream, origin } = this.#deps;
    const begunAt = Date.now();
    if (!keep || (await links.isDetached(this.#job, begunAt))) {
      return this.whole((await readFacts(source, upstream)).job, true);
    }
    let answer: UpstreamAnswer = "unreachable";
    const { stream, done } = scanLarge(source, upstream, {
      replaceId: () => this.#handle,
      conclude: async (facts) => {
        const job = jobOf(facts);
        if (!job || !isJobState(job.status)) throw notKept;
        const seenAt = Date.now();
        const ended = this.#ended(job, seenAt);
        const seen = await links.present(job, { ...ended, partly: true }, origin, seenAt);
        answer = going(job.status);
        if (!isFinal(job.status)) throw notKept;
        answer = { ...endOf(job.status, ended, seenAt), media: seen.kept, body: this.#withoutOutput(seen) };
        // It names no job, or is not this owner's any more.
        if (facts.id === undefined || seen.answer.status !== job.status) throw notKept;
      },
    });
    const [isTaken] = await Promise.all([keep(stream), done]);
    return isTaken ? taken(answer) : answer;
  }

  #ended(answer: UpstreamJob, seenAt: number): EndedJob {
    const target = { name: this.#job.model, model: this.#job.known, maxMicroUsd: 0 };
    return { ...this.#job, ending: endingOf(answer, target, this.#job, { askedAt: this.#askedAt, seenAt }) };
  }

  #withoutOutput({ answer: { output: _, ...others } }: Presented): string {
    return JSON.stringify({ ...others, id: this.#handle });
  }
}

const notKept = new Error("is not kept");

function going(status: JobState): UpstreamAnswer {
  return { status, costMicroUsd: null, completedAt: 0 };
}

function endOf(status: JobState, { ending }: EndedJob, seenAt: number) {
  const { costMicroUsd = null, completedAt = seenAt } = ending ?? {};
  return { status, costMicroUsd, completedAt };
}

function taken(answer: UpstreamAnswer): UpstreamAnswer {
  if (typeof answer === "string") return answer;
  const { body: _, ...others } = answer;
  return { ...others, isTaken: true };
}
