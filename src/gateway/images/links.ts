// A finished job as its owner sees it: links of ours for the upstream's media, built when the answer is written.
import type { Config } from "../../config.ts";
import { isFinal } from "../../contract/states.ts";
import type { Model } from "../../models/model.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import type { Ending } from "../quota/metering.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { type Concluded, type Generation, jobObject } from "./generation.ts";
import type { Keyed } from "./job-media.ts";
import { mediaIn } from "./media.ts";
import { type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { mayReuse } from "./reuse-key.ts";

export interface EndedJob {
  readonly owner: string;
  readonly model: string;
  /** Undefined for an endpoint that the catalog does not know. */
  readonly known: Model | undefined;
  readonly ref: string;
  readonly admission: string;
  readonly ending: Ending | undefined;
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
  readonly #generation: DurableObjectNamespace<Generation>;
  readonly #seen = new BoundedMemory<Concluded>(rememberedCharacters);

  constructor(config: Config, generation: DurableObjectNamespace<Generation>) {
    this.#config = config;
    this.#keys = mediaKeysOf(config);
    this.#generation = generation;
  }

  /** Undefined as the origin where nobody is there to say it: then the media is kept, and its URL is left as it is. */
  async present(answer: UpstreamJob, job: EndedJob, origin: string | undefined, now: number): Promise<Presented> {
    if (!isFinal(answer.status)) return this.#presented(answer, this.#seen.get(job.admission, now) ?? nothing, origin);
    const known = this.#seen.get(job.admission, now);
    const concluded = known ?? (await this.#conclude(answer, job));
    if (!known && concluded !== nothing) this.#seen.set(job.admission, concluded, now + rememberMs);
    return this.#presented(answer, concluded, origin);
  }

  /** A retry makes the same job end once more. */
  forget(admission: string): void {
    this.#seen.set(admission, nothing, 0);
  }

  /** A detached admission is cancelled for its owner, whatever becomes of the job. */
  detached(admission: string, now: number): void {
    this.#seen.set(admission, { kept: [], rider: "detached" }, now + rememberMs);
  }

  /** One call for an isolate and an admission; without it the upstream's URL is all there is, and it is no dead link. */
  async #conclude(answer: UpstreamJob, job: EndedJob): Promise<Concluded> {
    const { owner, model, ref, admission, ending, known } = job;
    const { costMicroUsd = null, completedAt = Date.now() } = ending ?? {};
    const completed = answer.status === "COMPLETED";
    const media = completed ? mediaIn(answer.output, { owner, model, costMicroUsd, completedAt }) : [];
    if (media.length === 0 && !mayReuse(known, this.#config)) return nothing;
    try {
      const tag = await this.#keys.tagOf({ owner, model, ref });
      const keyed = await Promise.all(
        media.map(async (one) => ({ key: await this.#keys.mint(tag, one.field, one.expiresAt), media: one })),
      );
      const sight = { admission, ref, status: answer.status, media: keyed };
      return await jobObject(this.#generation, tag).conclude(sight);
    } catch (error) {
      const name = error instanceof Error ? error.name : "unknown";
      console.warn(JSON.stringify({ binding: "GENERATION", problem: "media was not kept", error: name }));
      return nothing;
    }
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

  withLinks(output: unknown, kept: readonly Keyed[], origin: string | undefined): object {
    const gateway = this.#config.imageLinks === "gateway" && origin !== undefined;
    const links = kept.map(({ key, media }) => [media.field, gateway ? linkOf(origin, key) : media.url]);
    const expiresAt = Math.min(...kept.map(({ media }) => media.expiresAt));
    return { ...(output as object), ...Object.fromEntries(links), expires_at: new Date(expiresAt).toISOString() };
  }
}

/** Where a link of ours is fetched. */
export function linkOf(origin: string, key: string): string {
  return `${origin}/images/${key}`;
}
