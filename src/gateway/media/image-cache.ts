// What KV keeps: `media/<key>`, where a link leads, and `reuse/<scope>/<hash>`, which request has been answered before.
import * as z from "zod";
import { answersWithinMs } from "../../durable/remote.ts";
import { nameOfFault } from "../../errors.ts";
import { inTime } from "../../isolate/in-time.ts";
import { type Media, mediaSchema } from "./media.ts";
import { endOf, mediaKeySchema } from "./media-key.ts";

/** KV refuses a shorter lifetime than a minute by its own clock, which may be ahead of ours. */
const minLifetimeMs = 90_000;
/** How old an answer of KV may be. A deleted link is gone after this time. */
const cacheMs = 60_000;

export const reusableSchema = z.object({ key: mediaKeySchema, media: mediaSchema });
/** An answer that another request may have: the first one's media and its key. */
export type Reusable = z.infer<typeof reusableSchema>;

export function mediaCacheKey(key: string): string {
  return `media/${key}`;
}

export function reuseCacheKey(scope: string, hash: string): string {
  return `reuse/${scope}/${hash}`;
}

/** What became of a link of an owner's own to an answer that all share. */
export function linkCacheKey(key: string): string {
  return `link/${key}`;
}
const linkStates = ["kept", "removed"] as const;
export type LinkState = (typeof linkStates)[number];

/** Whether the entry serves every owner. */
export function isShared(name: string): boolean {
  return name.startsWith(reuseCacheKey(sharedScope, ""));
}
export const sharedScope = "shared";

export class ImageCache {
  readonly #kv: KVNamespace;

  constructor(kv: KVNamespace) {
    this.#kv = kv;
  }

  /** Kept until its key ends. That may be later than the media ends, if the job's end became known late. */
  async put(key: string, media: Media, now: number): Promise<void> {
    await this.#write(mediaCacheKey(key), media, endOf(key), now);
  }

  find(key: string): Promise<Media | undefined> {
    return this.#read(mediaCacheKey(key), mediaSchema, cacheMs);
  }

  async remove(key: string): Promise<void> {
    await this.#kv.delete(mediaCacheKey(key));
  }

  /** The name is one of `reuseCacheKey`. */
  async removeReusable(name: string): Promise<void> {
    await this.#kv.delete(name);
  }

  /**
   * Undefined if its owner has had no such link. It has a KV entry of its own, since KV would remember a miss of the
   * link itself for a while.
   */
  async linkState(key: string): Promise<LinkState | undefined> {
    const reading = this.#kv.get(linkCacheKey(key), { cacheTtl: cacheMs / 1000 });
    const state = await inTime(answersWithinMs.comfort, reading);
    return linkStates.find((known) => known === state);
  }

  async setLinkState(key: string, state: LinkState, now: number): Promise<void> {
    await this.#kv.put(linkCacheKey(key), state, { expiration: expirationOf(endOf(key), now) });
  }

  /** The name is one of `reuseCacheKey`. */
  async putReusable(name: string, entry: Reusable, now: number): Promise<void> {
    await this.#write(name, entry, entry.media.expiresAt, now);
  }

  /** KV takes no age below half a minute. */
  findReusable(name: string, maxAgeMs: number): Promise<Reusable | undefined> {
    return this.#read(name, reusableSchema, maxAgeMs);
  }

  async #write(key: string, value: object, expiresAt: number, now: number): Promise<void> {
    await this.#kv.put(key, JSON.stringify(value), { expiration: expirationOf(expiresAt, now) });
  }

  /** An entry that cannot be read, or not in time, counts as a miss: reuse is optional. */
  async #read<T>(key: string, schema: z.ZodType<T>, maxAgeMs: number): Promise<T | undefined> {
    try {
      const reading = this.#kv.get(key, { type: "json", cacheTtl: maxAgeMs / 1000 });
      const value = await inTime(answersWithinMs.comfort, reading);
      return value === null ? undefined : schema.parse(value);
    } catch (error) {
      console.warn(JSON.stringify({ binding: "IMAGES", problem: "an entry was not read", error: nameOfFault(error) }));
      return undefined;
    }
  }
}

/** In seconds. */
function expirationOf(expiresAt: number, now: number): number {
  return Math.ceil(Math.max(expiresAt, now + minLifetimeMs) / 1000);
}
