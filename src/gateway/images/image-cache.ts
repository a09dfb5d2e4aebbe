// What KV keeps of media: where each link leads and until when, and which request may be answered by which picture.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";

export const mediaFields = ["image_url", "video_url", "audio_url"] as const;
export type MediaField = (typeof mediaFields)[number];

const moment = z.int().min(0);
const mediaSchema = z.object({
  url: z.string(),
  field: z.enum(mediaFields),
  model: z.string(),
  costMicroUsd: z.number().nullable(),
  size: z.number().nullable(),
  completedAt: moment,
  expiresAt: moment,
});
export type Media = z.infer<typeof mediaSchema>;

/** KV refuses a shorter lifetime. */
const minLifetimeMs = 60_000;
/** A KV answer may be this old: after a deletion the link is gone within it. */
const cacheSeconds = 60;
/** An expired link answers 410 for a while before it is unknown. */
const graveMs = 30 * 24 * 60 * 60 * 1000;

export function mediaCacheKey(key: string): string {
  return `media/${key}`;
}

export function reuseCacheKey(scope: string, hash: string): string {
  return `reuse/${scope}/${hash}`;
}

/** Seven days after completion, or when the URL itself says that it ends, whichever is earlier. */
export function expiryOf(url: string, completedAt: number): number {
  return Math.min(completedAt + limits.mediaLifetimeMs, signedExpiry(url) ?? Number.POSITIVE_INFINITY);
}

/** The moment that a presigned URL names: S3's `X-Amz-Date` and `X-Amz-Expires`, or a plain `Expires` in seconds. */
function signedExpiry(url: string): number | undefined {
  const query = URL.parse(url)?.searchParams;
  const [, year, month, day, hour, minute, second] = amzDate.exec(query?.get("X-Amz-Date") ?? "") ?? [];
  const lifetime = Number(query?.get("X-Amz-Expires"));
  if (year && lifetime > 0) return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) + lifetime * 1000;
  const plain = Number(query?.get("Expires") ?? query?.get("se_epoch"));
  return Number.isSafeInteger(plain) && plain > 1e9 && plain < 1e11 ? plain * 1000 : undefined;
}
const amzDate = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

export class ImageCache {
  readonly #kv: KVNamespace;

  constructor(kv: KVNamespace) {
    this.#kv = kv;
  }

  async put(key: string, media: Media, now: number): Promise<void> {
    await this.#write(mediaCacheKey(key), media, media.expiresAt + graveMs, now);
  }

  find(key: string): Promise<Media | undefined> {
    return this.#read(mediaCacheKey(key), mediaSchema);
  }

  async remove(key: string): Promise<void> {
    await this.#kv.delete(mediaCacheKey(key));
  }

  async putReusable(scope: string, hash: string, entry: Reusable, now: number): Promise<void> {
    await this.#write(reuseCacheKey(scope, hash), entry, entry.expiresAt, now);
  }

  findReusable(scope: string, hash: string): Promise<Reusable | undefined> {
    return this.#read(reuseCacheKey(scope, hash), reusableSchema);
  }

  async #write(key: string, value: object, expiresAt: number, now: number): Promise<void> {
    const expiration = Math.ceil(Math.max(expiresAt, now + minLifetimeMs) / 1000);
    await this.#kv.put(key, JSON.stringify(value), { expiration });
  }

  async #read<T>(key: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const text = await this.#kv.get(key, { cacheTtl: cacheSeconds });
    return text === null ? undefined : schema.parse(JSON.parse(text));
  }
}

const reusableSchema = z.object({
  /** The media key that the first request got. */
  key: z.string(),
  output: z.record(z.string(), z.unknown()),
  field: z.enum(mediaFields),
  url: z.string(),
  completedAt: moment,
  expiresAt: moment,
});
/** An answer that another request may have: its output, without links of ours. */
export type Reusable = z.infer<typeof reusableSchema>;
