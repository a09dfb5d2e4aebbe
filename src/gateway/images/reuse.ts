// Answers from the cache: found by what was asked, handed out under a link of the caller's own, asked about by handle.
import type { Config } from "../../config.ts";
import { nameOfFault, Problem } from "../../errors.ts";
import type { Model, ModelInput } from "../../models/model.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import { answersWithinMs, type Remote } from "../../wire/remote.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import { ImageCache, isShared, type LinkState, type Reusable } from "./image-cache.ts";
import { type JobMedia, jobMediaObject } from "./job-media.ts";
import type { Keyed } from "./kept-links.ts";
import type { Links } from "./links.ts";
import type { Media } from "./media.ts";
import { type MediaKey, type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { isReusable, isReusableAt, nameReuse } from "./reuse-key.ts";

export interface Asker {
  readonly owner: string;
  readonly ownerHash: string;
}

interface OwnLink {
  readonly link: Keyed;
  readonly isNew: boolean;
}

const cachedPrefix = "cached-";
const rememberedCharacters = 256 * 1024;
/** As long may a link that its owner deleted elsewhere still be handed out and served here: KV itself tells of it as long. */
const rememberMs = 60_000;
/** KV may answer as late as it is asked to, and what it said is remembered as long again: together a minute, too. */
const foundMs = 30_000;
const foundCharacters = 2 * 1024 * 1024;

export class Reuse {
  readonly #config: Config;
  readonly #cache: ImageCache;
  readonly #keys: MediaKeys;
  readonly #jobs: DurableObjectNamespace<JobMedia>;
  readonly #links: Links;
  /** Links that an answer from the cache may carry, and those that were deleted here, which KV may still tell of. */
  readonly #states = new BoundedMemory<LinkState>(rememberedCharacters);
  /** Answers that were found a moment ago: asked again they cost no read of KV. */
  readonly #found = new BoundedMemory<Reusable>(foundCharacters);

  constructor(config: Config, env: Pick<Env, "IMAGES" | "JOB_MEDIA">, links: Links) {
    this.#config = config;
    this.#cache = new ImageCache(env.IMAGES);
    this.#keys = mediaKeysOf(config);
    this.#jobs = env.JOB_MEDIA;
    this.#links = links;
  }

  /** The id of a job that no upstream has: the answer is in KV. */
  refOf(key: string): string {
    return cachedPrefix + key;
  }

  /** The media key of such an id; undefined for one of the upstream's. */
  keyOf(ref: string): string | undefined {
    return ref.startsWith(cachedPrefix) ? ref.slice(cachedPrefix.length) : undefined;
  }

  /** The request's name; undefined for one that is not reused. */
  async nameOf(model: Model | undefined, input: ModelInput | undefined, asker: Asker): Promise<string | undefined> {
    if (!input || !isReusable(model, input, this.#config)) return undefined;
    return nameReuse(model, input, this.#config, asker);
  }

  async find(name: string, now: number): Promise<Reusable | undefined> {
    const known = this.#found.get(name, now);
    const entry = known ?? (await this.#cache.findReusable(name, foundMs));
    if (entry && !known) this.#found.set(name, entry, now + foundMs, JSON.stringify(entry).length);
    if (!entry || !isReusableAt(entry.media, now)) return undefined;
    // A shared answer stays for the others.
    return !isShared(name) && this.#isDeletedHere(entry.key, now) ? undefined : entry;
  }

  /** What was found leads nowhere any more. */
  forget(name: string): void {
    this.#found.forget(name);
  }

  /**
   * The answer under a link of the caller's own: `DELETE` removes it for nobody else. Undefined once that was done. `isNew`
   * says that its owner has not had it before: it is counted first, then kept, and no object is woken for it.
   */
  async own(found: Reusable, { owner }: Asker, now: number): Promise<OwnLink | undefined> {
    const isFirst = found.media.owner === owner;
    // In a scope of their own the answer went with the link; a shared one stays for the others.
    if (isFirst && this.#config.reuseScope === "user") return { link: found, isNew: false };
    const link = isFirst ? found : await this.#linkOf(found, owner);
    const known = this.#states.get(link.key, now);
    const state = known ?? (await this.#cache.linkState(link.key).catch(() => undefined));
    if (state === "removed") return undefined;
    const isNew = state === undefined && !isFirst;
    if (!isNew && !known) this.#states.set(link.key, "kept", now + rememberMs);
    return { link, isNew };
  }

  /** False where KV does not take it: a link that leads nowhere is handed out to nobody. */
  async keep({ key, media }: Keyed, now: number): Promise<boolean> {
    try {
      await this.#cache.put(key, media, now);
      await this.#cache.setLinkState(key, "kept", now);
    } catch (error) {
      console.warn(JSON.stringify({ binding: "IMAGES", problem: "a link was not kept", error: nameOfFault(error) }));
      return false;
    }
    this.#states.set(key, "kept", now + rememberMs);
    return true;
  }

  #isDeletedHere(key: string, now: number): boolean {
    return this.#states.get(key, now) === "removed";
  }

  #job({ tag }: MediaKey): Remote<JobMedia> {
    return jobMediaObject(this.#jobs, tag, answersWithinMs.needed);
  }

  /** A further owner's link to what the first one's leads to: the same whenever it is made. */
  async #linkOf({ key, media }: Reusable, owner: string): Promise<Keyed> {
    const tag = this.#keys.tagOf({ owner, model: media.model, ref: `${cachedPrefix}${key}` });
    return { key: this.#keys.mint(tag, media.field, media.expiresAt), media: { ...media, owner } };
  }

  /** What a link leads to: KV, and where that does not know yet, the object that was told first. */
  async media(key: MediaKey, now: number): Promise<Media | undefined> {
    if (this.#isDeletedHere(key.text, now)) return undefined;
    const known = await this.#cache.find(key.text);
    return known ?? this.#job(key).find(key.field).catch(unreached);
  }

  /** The link, and in the owner's own scope the answer to the same request: others keep theirs. */
  async remove(key: MediaKey, now: number): Promise<void> {
    this.#states.forget(key.text);
    const isGone = await this.#job(key).remove(key.field, key.text).catch(unreached);
    // Its object goes on trying; until then its owner may ask for the same again.
    if (!isGone) unreached();
    this.#states.set(key.text, "removed", now + rememberMs);
  }

  /** Undefined where there is nothing under the key, or no more. */
  async job(key: string, origin: string, now: number): Promise<UpstreamJob | undefined> {
    const read = this.#keys.read(key);
    const media = read && read.expiresAt > now ? await this.media(read, now) : undefined;
    return media && this.answer({ key, media }, origin);
  }

  answer({ key, media }: Keyed, origin: string): UpstreamJob {
    const output = this.#links.withLinks(media.others ?? {}, [{ key, media }], origin);
    return { status: "COMPLETED", output, delayTime: 0, executionTime: 0 };
  }
}

function unreached(): never {
  throw new Problem("UNAVAILABLE", "The image cannot be reached at the moment.", { "Retry-After": "1" });
}
