// A finished job as its owner sees it: links of ours for the upstream's media, built when the answer is written.
import type { Config } from "../../config.ts";
import type { MediaField } from "../../contract/media-fields.ts";
import { isFinal } from "../../contract/states.ts";
import { nameOfFault } from "../../errors.ts";
import type { Model } from "../../models/model.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import { answersWithinMs, type Remote } from "../../wire/remote.ts";
import type { Ending } from "../quota/metering.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { type Concluded, type JobMedia, jobMediaObject } from "./job-media.ts";
import type { Handed, Keyed } from "./kept-links.ts";
import { expiryOf, isLink, mediaIn } from "./media.ts";
import { type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { mayReuse } from "./reuse-key.ts";
import { StreamedLinks } from "./streamed-links.ts";

export interface EndedJob {
  readonly owner: string;
  readonly model: string;
  /** Undefined for an endpoint that the catalog does not know. */
  readonly known: Model | undefined;
  readonly ref: string;
  readonly admission: string;
  readonly ending: Ending | undefined;
  /** The answer streamed: of its output only what was seen of it is known. */
  readonly partly?: boolean;
  /** Keys that the answer handed out before it said the job's id. */
  readonly early?: ReadonlyMap<MediaField, string>;
}

export interface Presented {
  readonly answer: UpstreamJob;
  /** For the owner's gallery. */
  readonly kept: readonly Keyed[];
  /** Another admission pays for the job. */
  readonly joined: boolean;
}

const rememberedCharacters = 2 * 1024 * 1024;
const rememberMs = 60 * 60 * 1000;
const nothing: Concluded = { kept: [], rider: null };

export class Links {
  readonly #config: Config;
  readonly #keys: MediaKeys;
  readonly #jobs: DurableObjectNamespace<JobMedia>;
  readonly #seen = new BoundedMemory<Concluded>(rememberedCharacters);

  constructor(config: Config, jobs: DurableObjectNamespace<JobMedia>) {
    this.#config = config;
    this.#keys = mediaKeysOf(config);
    this.#jobs = jobs;
  }

  /** Undefined as the origin where nobody is there to say it: then the media is kept, and its URL is left as it is. */
  async present(answer: UpstreamJob, job: EndedJob, origin: string | undefined, now: number): Promise<Presented> {
    if (!isFinal(answer.status)) return this.#presented(answer, this.#seen.get(job.admission, now) ?? nothing, origin);
    const known = this.#seen.get(job.admission, now);
    const concluded = known ?? (await this.#conclude(answer, job));
    // A failed job may be retried through another isolate, and end once more.
    if (!known && answer.status === "COMPLETED" && concluded !== nothing)
      this.#seen.set(job.admission, concluded, now + rememberMs, JSON.stringify(concluded).length);
    return this.#presented(answer, concluded, origin);
  }

  /**
   * The key for a URL that passes by, before its answer's end is known; whoever asks again is told the same. Undefined
   * for what is no link, and where nobody can be asked: then the URL stays, and is no dead link.
   */
  async reserve(
    { owner, model, admission, ref }: Pick<EndedJob, "owner" | "model" | "admission"> & { ref: string | undefined },
    { field, url, completedAt }: { field: MediaField; url: string; completedAt: number },
    now: number,
  ): Promise<Handed | undefined> {
    const known = this.#seen.get(admission, now);
    if (known) {
      const kept = known.kept.find(({ media }) => media.field === field);
      return kept && { key: kept.key, expiresAt: kept.media.expiresAt };
    }
    if (!isLink(url)) return undefined;
    const expiresAt = expiryOf(url, completedAt);
    try {
      const tag = this.#keys.tagOf({ owner, model, ref: ref ?? admission });
      const key = this.#keys.mint(tag, field, expiresAt);
      return ref === undefined ? { key, expiresAt } : await this.#job(tag).reserve(field, key);
    } catch (error) {
      logUnkept(error);
      return undefined;
    }
  }

  /** What was handed out belongs to no good end: the job may have another one. */
  async withdraw({ owner, model, ref }: Pick<EndedJob, "owner" | "model" | "ref">): Promise<void> {
    try {
      await this.#job(this.#keys.tagOf({ owner, model, ref })).withdraw();
    } catch (error) {
      logUnkept(error);
    }
  }

  /** The links of an answer that streams. */
  stream(job: Pick<EndedJob, "owner" | "model" | "admission">, origin: string | undefined): StreamedLinks {
    return new StreamedLinks(this, job, origin);
  }

  /** A retry makes the same job end once more. */
  forget(admission: string): void {
    this.#seen.forget(admission);
  }

  /** A detached admission is cancelled for its owner, whatever becomes of the job. */
  detached(admission: string, now: number): void {
    this.#seen.set(admission, { kept: [], rider: "detached" }, now + rememberMs);
  }

  /** Whether its owner got off a job that goes on for others, here or in another isolate. */
  async isDetached(job: Pick<EndedJob, "owner" | "model" | "known" | "ref" | "admission">, now: number) {
    const seen = this.#seen.get(job.admission, now);
    if (seen || !mayReuse(job.known, this.#config)) return seen?.rider === "detached";
    try {
      return (await this.#job(this.#keys.tagOf(job)).riderOf(job.admission)) === "detached";
    } catch (error) {
      logUnkept(error);
      return false;
    }
  }

  /** One call for an isolate and an admission; without it the upstream's URL is all there is, and it is no dead link. */
  async #conclude(answer: UpstreamJob, job: EndedJob): Promise<Concluded> {
    const { owner, model, ref, admission, ending, known, partly, early } = job;
    const { costMicroUsd = null, completedAt = Date.now() } = ending ?? {};
    const completed = answer.status === "COMPLETED";
    const media = completed ? mediaIn(answer.output, { owner, model, costMicroUsd, completedAt, partly }) : [];
    if (media.length === 0 && !mayReuse(known, this.#config)) return nothing;
    try {
      const tag = this.#keys.tagOf({ owner, model, ref });
      const keyed = await Promise.all(
        media.map(async (one) => ({
          key: early?.get(one.field) ?? this.#keys.mint(tag, one.field, one.expiresAt),
          media: one,
        })),
      );
      if (early && early.size > 0) {
        const name = this.#keys.tagOf({ owner, model, ref: admission });
        await this.#job(name).mirror(tag, keyed);
      }
      const sight = { admission, ref, status: answer.status, media: keyed };
      return await this.#job(tag).conclude(sight);
    } catch (error) {
      logUnkept(error);
      return nothing;
    }
  }

  #job(tag: string): Remote<JobMedia> {
    return jobMediaObject(this.#jobs, tag, answersWithinMs.comfort);
  }

  #presented(answer: UpstreamJob, { kept, rider }: Concluded, origin: string | undefined): Presented {
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
    return { answer: { ...answer, output: this.withLinks(answer.output, kept, origin) }, kept, joined };
  }

  /** The link as an answer carries it. */
  shown(key: string, url: string, origin: string | undefined): string {
    return this.#config.imageLinks === "gateway" && origin !== undefined ? linkOf(origin, key) : url;
  }

  withLinks(output: unknown, kept: readonly Keyed[], origin: string | undefined): object {
    const links = kept.map(({ key, media }) => [media.field, this.shown(key, media.url, origin)]);
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
