// Answers from the cache: found by what was asked, handed out under a link of the caller's own, asked about by handle.
import type { Config } from "../../config.ts";
import { answersWithinMs, type Remote } from "../../durable/remote.ts";
import { nameOfFault, Problem } from "../../errors.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import { inTime } from "../../isolate/in-time.ts";
import type { Model, ModelInput } from "../../models/model.ts";
import type { UpstreamJob } from "../upstream/upstream-answer.ts";
import { ImageCache, isShared, type LinkState, type Reusable } from "./image-cache.ts";
import { type JobMedia, jobMediaObject } from "./job-media.ts";
import type { MediaEntry } from "./kept-links.ts";
import type { Links } from "./links.ts";
import type { Media } from "./media.ts";
import { type MediaKey, type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { isReusable, isReusableAt, nameReuse } from "./reuse-key.ts";

export interface Caller {
  readonly owner: string;
  readonly ownerHash: string;
}

interface OwnLink {
  readonly link: MediaEntry;
  readonly isNew: boolean;
}

const cachedPrefix = "cached-";
const rememberedCharacters = 256 * 1024;
/** How long this isolate may still hand out a link that its owner deleted elsewhere. KV may serve it as long. */
const rememberMs = 60_000;
/**
 * The age of an entry that we accept from KV, and how long the isolate then remembers it. An entry may thus be twice as
 * old.
 */
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
  upstreamIdOf(key: string): string {
    return cachedPrefix + key;
  }

  /** The media key of such an id; undefined for one of the upstream's. */
  keyOf(upstreamId: string): string | undefined {
    return upstreamId.startsWith(cachedPrefix) ? upstreamId.slice(cachedPrefix.length) : undefined;
  }

  /** The request's name; undefined for one that is not reused. */
  nameOf(
    model: Model | undefined,
    input: ModelInput | undefined,
    caller: Caller,
  ): string | Promise<string> | undefined {
    if (!input || !isReusable(model, input, this.#config)) return undefined;
    return nameReuse(model, input, this.#config, caller);
  }

  /** A promise only where KV must be asked. */
  find(name: string, now: number): Reusable | undefined | Promise<Reusable | undefined> {
    const known = this.#found.get(name, now);
    return known ? this.#unlessOver(name, known, now) : this.#findInKv(name, now);
  }

  async #findInKv(name: string, now: number): Promise<Reusable | undefined> {
    const entry = await this.#cache.findReusable(name, foundMs);
    if (!entry) return undefined;
    this.#found.set(name, entry, now + foundMs, JSON.stringify(entry).length);
    return this.#unlessOver(name, entry, now);
  }

  #unlessOver(name: string, entry: Reusable, now: number): Reusable | undefined {
    if (!isReusableAt(entry.media, now)) return undefined;
    // A shared answer stays for the others.
    return !isShared(name) && this.#isDeletedHere(entry.key, now) ? undefined : entry;
  }

  /** What was found leads nowhere any more. */
  forget(name: string): void {
    this.#found.forget(name);
  }

  /**
   * The answer under a link of the caller's own, so that its `DELETE` removes it for nobody else. Undefined if the
   * caller has deleted that link. `isNew`: the caller has not had the link before, so the meter must count it, and then
   * it is kept. No object is woken for it, and no promise made where nothing has to be asked.
   */
  own(found: Reusable, { owner }: Caller, now: number): OwnLink | Promise<OwnLink | undefined> {
    const isFirst = found.media.owner === owner;
    // In the scope `user` the entry is deleted with the link, so a found one is good. In the scope `shared` it stays
    // for the others.
    if (isFirst && this.#config.reuseScope === "user") return { link: found, isNew: false };
    return this.#ownOfShared(isFirst ? found : this.#linkOf(found, owner), isFirst, now);
  }

  async #ownOfShared(link: MediaEntry, isFirst: boolean, now: number): Promise<OwnLink | undefined> {
    const known = this.#states.get(link.key, now);
    const state = known ?? (await this.#cache.linkState(link.key).catch(() => undefined));
    if (state === "removed") return undefined;
    const isNew = state === undefined && !isFirst;
    if (!isNew && !known) this.#states.set(link.key, "kept", now + rememberMs);
    return { link, isNew };
  }

  /** False if KV refuses it, or says nothing in time: then the link must not be handed out, since it would lead nowhere. */
  async keep({ key, media }: MediaEntry, now: number): Promise<boolean> {
    try {
      const kept = this.#cache.put(key, media, now).then(() => this.#cache.setLinkState(key, "kept", now));
      await inTime(answersWithinMs.comfort, kept);
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

  /** Another owner's link to the same media. It is always the same one for the same owner. */
  #linkOf({ key, media }: Reusable, owner: string): MediaEntry {
    const tag = this.#keys.tagOf({ owner, model: media.model, upstreamId: `${cachedPrefix}${key}` });
    return { key: this.#keys.mint(tag, media.field, media.expiresAt), media: { ...media, owner } };
  }

  /** What a link leads to, from KV; if KV does not have it yet, from the job's object. */
  async media(key: MediaKey, now: number): Promise<Media | undefined> {
    if (this.#isDeletedHere(key.text, now)) return undefined;
    const known = await this.#cache.find(key.text);
    return known ?? this.#job(key).find(key.field).catch(throwUnreachable);
  }

  /** The link, and in the owner's own scope the answer to the same request: others keep theirs. */
  async remove(key: MediaKey, now: number): Promise<void> {
    this.#states.forget(key.text);
    const isGone = await this.#job(key).remove(key.field, key.text).catch(throwUnreachable);
    // Its object goes on trying; until then its owner may ask for the same again.
    if (!isGone) throwUnreachable();
    this.#states.set(key.text, "removed", now + rememberMs);
  }

  /** Undefined where there is nothing under the key, or no more. */
  async job(key: string, origin: string, now: number): Promise<UpstreamJob | undefined> {
    const read = this.#keys.read(key);
    const media = read && read.expiresAt > now ? await this.media(read, now) : undefined;
    return media && this.answer({ key, media }, origin);
  }

  answer({ key, media }: MediaEntry, origin: string): UpstreamJob {
    const output = this.#links.rewriteMedia(media.others ?? {}, [{ key, media }], origin);
    return { status: "COMPLETED", output, delayTime: 0, executionTime: 0 };
  }
}

function throwUnreachable(): never {
  throw new Problem("UNAVAILABLE", "The image cannot be reached at the moment.", { "Retry-After": "1" });
}
