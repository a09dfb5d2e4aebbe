// A finished job as its owner sees it: the upstream's media URLs are replaced by the gateway's links when the answer is
// written.
import type { Config } from "../../config.ts";
import { isFinal } from "../../contract/states.ts";
import { answersWithinMs, type Remote, repeated } from "../../durable/remote.ts";
import { nameOfFault } from "../../errors.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import type { Model } from "../../models/model.ts";
import type { Ending } from "../quota/metering.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import { type JobMedia, jobMediaObject, type KeptMedia } from "./job-media.ts";
import type { MediaEntry } from "./kept-links.ts";
import { mediaIn } from "./media.ts";
import { type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { mayReuse } from "./reuse-key.ts";

export interface EndedJob {
  readonly owner: string;
  readonly model: string;
  /** Undefined for an endpoint that the catalog does not know. */
  readonly known: Model | undefined;
  readonly upstreamId: string;
  readonly admission: string;
  readonly ending: Ending | undefined;
  /** The answer streamed: of its output only what was seen of it is known. */
  readonly partly?: boolean;
  /** Nobody but a notice has said that the job is this admission's: no link is made yet. */
  readonly isUnproven?: boolean;
}

export interface Presented {
  readonly answer: UpstreamJob;
  /** For the owner's gallery. */
  readonly kept: readonly MediaEntry[];
  /** Another admission pays for the job. */
  readonly joined: boolean;
}

const rememberedCharacters = 2 * 1024 * 1024;
const rememberMs = 60 * 60 * 1000;
const nothing: KeptMedia = { kept: [], rider: null };

export class Links {
  readonly #config: Config;
  readonly #keys: MediaKeys;
  readonly #jobs: DurableObjectNamespace<JobMedia>;
  readonly #seen = new BoundedMemory<KeptMedia>(rememberedCharacters);

  constructor(config: Config, jobs: DurableObjectNamespace<JobMedia>) {
    this.#config = config;
    this.#keys = mediaKeysOf(config);
    this.#jobs = jobs;
  }

  /**
   * Without an origin (the meter's alarm has no request to take it from) the media is kept, but its URL is not
   * replaced. A promise only for a job that has ended.
   */
  present(answer: UpstreamJob, job: EndedJob, origin: string | undefined, now: number): Presented | Promise<Presented> {
    if (isFinal(answer.status)) return this.#presentEnded(answer, job, origin, now);
    return this.#presented(answer, this.#seen.get(job.admission, now) ?? nothing, origin);
  }

  async #presentEnded(answer: UpstreamJob, job: EndedJob, origin: string | undefined, now: number): Promise<Presented> {
    const known = this.#seen.get(job.admission, now);
    const keptMedia = known ?? (job.isUnproven ? nothing : await this.#conclude(answer, job));
    // A failed job may be retried through another isolate, and end once more.
    if (!known && answer.status === "COMPLETED" && keptMedia !== nothing)
      this.#seen.set(job.admission, keptMedia, now + rememberMs, JSON.stringify(keptMedia).length);
    return this.#presented(answer, keptMedia, origin);
  }

  /** For a job that writes into its caller's own bucket. Called before its first answer is presented. */
  async leaveAlone({
    owner,
    model,
    upstreamId,
    admission,
  }: Pick<EndedJob, "owner" | "model" | "upstreamId" | "admission">) {
    this.#seen.set(admission, nothing, Date.now() + rememberMs);
    await repeated(() => this.#job(this.#keys.tagOf({ owner, model, upstreamId })).leaveAlone()).catch(logUnkept);
  }

  /** A retry makes the same job end once more. */
  forget(admission: string): void {
    this.#seen.forget(admission);
  }

  /** The admission has left its shared job: its owner sees CANCELLED, whatever becomes of the job. */
  detached(admission: string, now: number): void {
    this.#seen.set(admission, { kept: [], rider: "detached" }, now + rememberMs);
  }

  /** Whether the admission has left its shared job, in this or another isolate. */
  async isDetached(job: Pick<EndedJob, "owner" | "model" | "known" | "upstreamId" | "admission">, now: number) {
    const seen = this.#seen.get(job.admission, now);
    if (seen || !mayReuse(job.known, this.#config)) return seen?.rider === "detached";
    try {
      return (await this.#job(this.#keys.tagOf(job)).riderOf(job.admission)) === "detached";
    } catch (error) {
      logUnkept(error);
      return false;
    }
  }

  /**
   * One call of the job's object per isolate and admission. If it fails, the answer keeps the upstream's URL, which
   * works too.
   */
  async #conclude(answer: UpstreamJob, job: EndedJob): Promise<KeptMedia> {
    const { owner, model, upstreamId, admission, ending, known, partly } = job;
    const { costMicroUsd = null, completedAt = Date.now() } = ending ?? {};
    const completed = answer.status === "COMPLETED";
    const media = completed ? mediaIn(answer.output, { owner, model, costMicroUsd, completedAt, partly }) : [];
    if (media.length === 0 && !mayReuse(known, this.#config)) return nothing;
    try {
      const tag = this.#keys.tagOf({ owner, model, upstreamId });
      const entries = media.map((one) => ({ key: this.#keys.mint(tag, one.field, one.expiresAt), media: one }));
      const outcome = { admission, ref: upstreamId, status: answer.status, media: entries };
      return await this.#job(tag).conclude(outcome);
    } catch (error) {
      logUnkept(error);
      return nothing;
    }
  }

  #job(tag: string): Remote<JobMedia> {
    return jobMediaObject(this.#jobs, tag, answersWithinMs.comfort);
  }

  #presented(answer: UpstreamJob, { kept, rider }: KeptMedia, origin: string | undefined): Presented {
    if (rider === "detached") {
      const { id, delayTime, executionTime } = answer;
      const times = {
        ...(delayTime !== undefined && { delayTime }),
        ...(executionTime !== undefined && { executionTime }),
      };
      return { answer: { ...(id !== undefined && { id }), status: "CANCELLED", ...times }, kept: [], joined: true };
    }
    const joined = rider === "joined";
    if (kept.length === 0) return { answer, kept, joined };
    return { answer: { ...answer, output: this.rewriteMedia(answer.output, kept, origin) }, kept, joined };
  }

  /** The link as an answer carries it. */
  urlFor(key: string, url: string, origin: string | undefined): string {
    return this.#config.imageLinks === "gateway" && origin !== undefined ? linkOf(origin, key) : url;
  }

  rewriteMedia(output: unknown, kept: readonly MediaEntry[], origin: string | undefined): object {
    const links = kept.map(({ key, media }) => [media.field, this.urlFor(key, media.url, origin)]);
    const expiresAt = Math.min(...kept.map(({ media }) => media.expiresAt));
    return { ...(output as object), ...Object.fromEntries(links), expires_at: new Date(expiresAt).toISOString() };
  }
}

function logUnkept(error: unknown): void {
  console.warn(JSON.stringify({ binding: "JOB_MEDIA", problem: "media was not kept", error: nameOfFault(error) }));
}

/** Where a link of ours is fetched. */
export function linkOf(origin: string, key: string): string {
  return `${origin}/images/${key}`;
}
