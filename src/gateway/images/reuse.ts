// Answers from the cache: found by what was asked, handed out under a link of the caller's own, asked about by handle.
import type { Config } from "../../config.ts";
import type { Model, ModelInput } from "../../models/model.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { flightObject, type Generation, jobObject } from "./generation.ts";
import { ImageCache, isShared, type Reusable } from "./image-cache.ts";
import type { Keyed } from "./job-media.ts";
import type { Links } from "./links.ts";
import type { Media } from "./media.ts";
import { type MediaKey, type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { isReusable, isReusableAt, nameReuse } from "./reuse-key.ts";

export interface Asker {
  readonly owner: string;
  readonly ownerHash: string;
}

const cachedPrefix = "cached-";
const syncPrefix = "sync-";
const rememberedCharacters = 256 * 1024;

export class Reuse {
  readonly #config: Config;
  readonly #cache: ImageCache;
  readonly #keys: MediaKeys;
  readonly #generation: DurableObjectNamespace<Generation>;
  readonly #links: Links;
  /** Links that were minted for who asked what another had asked. */
  readonly #minted = new BoundedMemory<true>(rememberedCharacters);

  constructor(config: Config, env: Pick<Env, "IMAGES" | "GENERATION">, links: Links) {
    this.#config = config;
    this.#cache = new ImageCache(env.IMAGES);
    this.#keys = mediaKeysOf(config);
    this.#generation = env.GENERATION;
    this.#links = links;
  }

  /** The id of a job that no upstream has: the answer is in KV. */
  refOf(key: string, operation: "run" | "runsync"): string {
    return `${operation === "runsync" ? syncPrefix : ""}${cachedPrefix}${key}`;
  }

  /** The media key of such an id; undefined for one of the upstream's. */
  keyOf(ref: string): string | undefined {
    const name = ref.startsWith(syncPrefix) ? ref.slice(syncPrefix.length) : ref;
    return name.startsWith(cachedPrefix) ? name.slice(cachedPrefix.length) : undefined;
  }

  /** The request's name; undefined for one that is not reused. */
  async nameOf(model: Model | undefined, input: ModelInput | undefined, asker: Asker): Promise<string | undefined> {
    if (!input || !isReusable(model, input, this.#config)) return undefined;
    return nameReuse(model, input, this.#config, asker);
  }

  async find(name: string, now: number): Promise<Reusable | undefined> {
    const entry = await this.#cache.findReusable(name);
    return entry && isReusableAt(entry.media, now) ? entry : undefined;
  }

  /** The answer under a link of the caller's own: `DELETE` then removes it for nobody else. */
  async own({ key, media }: Reusable, { owner }: Asker, now: number): Promise<Keyed> {
    if (media.owner === owner) return { key, media };
    const mine = { ...media, owner };
    const tag = await this.#keys.tagOf({ owner, model: media.model, ref: `${cachedPrefix}${key}` });
    const minted = await this.#keys.mint(tag, media.field, media.expiresAt);
    if (!this.#minted.get(minted, now)) {
      const sight = { admission: "", ref: "", status: "COMPLETED", media: [{ key: minted, media: mine }] };
      await jobObject(this.#generation, tag).conclude(sight);
      this.#minted.set(minted, true, media.expiresAt);
    }
    return { key: minted, media: mine };
  }

  /** What a link leads to: KV, and where that does not know yet, the object that was told first. */
  async media({ text, tag, field }: MediaKey): Promise<Media | undefined> {
    return (await this.#cache.find(text)) ?? (await jobObject(this.#generation, tag).find(field));
  }

  /** The link, and in the owner's own scope the answer to the same request: others keep theirs. */
  async remove({ text, tag, field }: MediaKey): Promise<void> {
    const request = await jobObject(this.#generation, tag).removeMedia(field);
    const own = request !== undefined && !isShared(request) ? request : undefined;
    await this.#cache.remove(text, own);
    if (own !== undefined) await flightObject(this.#generation, own).forgetFresh();
  }

  /** Undefined where there is nothing under the key, or no more. */
  async job(key: string, origin: string, now: number): Promise<UpstreamJob | undefined> {
    const read = await this.#keys.read(key);
    const media = read && read.expiresAt > now ? await this.media(read) : undefined;
    return media && this.answer({ key, media }, origin);
  }

  answer({ key, media }: Keyed, origin: string): UpstreamJob {
    const output = this.#links.withLinks(media.others ?? {}, [{ key, media }], origin);
    return { status: "COMPLETED", output, delayTime: 0, executionTime: 0 };
  }
}
