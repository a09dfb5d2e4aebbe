// What the meter's alarm asks the upstream about a job that nobody follows, and what it understands of the answer.
import type { Config } from "../../config.ts";
import { isFinal, isJobState, type JobState } from "../../contract/states.ts";
import { Problem } from "../../errors.ts";
import { findModel } from "../../models/index.ts";
import type { ByteSource } from "../../wire/byte-reader.ts";
import type { EndedJob, Links, Presented } from "../images/links.ts";
import { keptBytes } from "../kept-result.ts";
import type { AskedJob, AskUpstream, DescribeEnd, LargeAnswers, UpstreamAnswer } from "../quota/metering.ts";
import { callUpstream, type Upstream } from "../upstream.ts";
import { openJob, type UpstreamJob } from "../upstream-answer.ts";
import { handlesOf } from "./handle.ts";
import { jobOf, readFacts, replacing, scanLarge } from "./large-answer.ts";
import { endingOf } from "./settling.ts";

interface Asker {
  readonly config: Config;
  readonly links: Links;
  readonly upstream: Upstream;
  readonly origin: string | undefined;
}

/** What is held where nobody takes it as it comes; of a larger answer all but its output is told. */
const held = { wholeBytes: keptBytes, turn: async () => {} };

export function asker(config: Config, links: Links, upstream: Upstream, origin: string | undefined): AskUpstream {
  return async (job, large) => {
    try {
      const segments = [job.model, "status", job.upstreamId];
      const signal = AbortSignal.timeout(upstream.times.headMs + upstream.times.bodyMs);
      const answered = await callUpstream(upstream, { method: "GET", segments, repeatable: true, signal });
      const question = new Question({ config, links, upstream, origin }, job, answered.askedAt);
      const opened = await openJob(answered, large ? undefined : held);
      if ("whole" in opened) return await question.told(opened.whole, false);
      await large?.turn();
      return await question.passing(opened.large, large?.keep);
    } catch (error) {
      return error instanceof Problem && error.code === "JOB_NOT_FOUND" ? "unknown" : "unreachable";
    }
  };
}

/** The id is the owner's: a webhook tells of the job that its submit was answered with. */
export function endDescriber(config: Config): DescribeEnd {
  return ({ owner, model, upstreamId: ref, first }, status) =>
    JSON.stringify({ id: handlesOf(config).mint({ owner, model }, { ref, admission: first }), status });
}

class Question {
  readonly #asker: Asker;
  readonly #job: Omit<EndedJob, "ending">;
  readonly #askedAt: number;
  readonly #handle: string;

  constructor(asker: Asker, { model, upstreamId: ref, owner, admission, first }: AskedJob, askedAt: number) {
    this.#asker = asker;
    this.#job = { owner, model, known: findModel(model), ref, admission };
    this.#askedAt = askedAt;
    this.#handle = handlesOf(asker.config).mint({ owner, model }, { ref, admission: first });
  }

  /** `partly`: of its output only what was seen of it is known. */
  async told(answer: UpstreamJob | undefined, partly: boolean): Promise<UpstreamAnswer> {
    if (!answer || !isJobState(answer.status)) return "unreachable";
    if (!isFinal(answer.status)) return going(answer.status);
    const seenAt = Date.now();
    const ended = this.#ended(answer, seenAt);
    const seen = await this.#asker.links.present(answer, { ...ended, partly }, this.#asker.origin, seenAt);
    const body = partly ? this.#withoutOutput(seen) : JSON.stringify({ ...seen.answer, id: this.#handle });
    return { ...endOf(answer.status, ended, seenAt), media: seen.kept, body };
  }

  /** Too large to hold: taken as its owner gets it, where it is to be kept, and heard on the way. */
  async passing(source: ByteSource, keep: LargeAnswers["keep"]): Promise<UpstreamAnswer> {
    const { links, upstream, origin } = this.#asker;
    const begunAt = Date.now();
    if (!keep || (await links.isDetached(this.#job, begunAt))) {
      return this.told((await readFacts(source, upstream)).job, true);
    }
    const passingLinks = links.stream(this.#job, origin);
    let answer: UpstreamAnswer = "unreachable";
    const { stream, done } = scanLarge(source, upstream, {
      ...replacing(passingLinks, this.#job, () => this.#handle, begunAt),
      conclude: async (facts) => {
        const job = jobOf(facts);
        if (!job || !isJobState(job.status)) throw notKept;
        const seenAt = Date.now();
        const ended = this.#ended(job, seenAt);
        const seen = await passingLinks.conclude(job, ended, seenAt);
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
