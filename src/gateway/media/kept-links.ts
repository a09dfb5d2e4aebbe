// The media links that one owner's job ended with. They are set once, and a link that its owner deleted stays deleted.
// Pure.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { type MediaField, mediaFields } from "../../contract/media-fields.ts";
import { type Media, mediaSchema } from "./media.ts";
import { mediaKeySchema } from "./media-key.ts";

export const mediaEntrySchema = z.object({ key: mediaKeySchema, media: mediaSchema });
export type MediaEntry = z.infer<typeof mediaEntrySchema>;

/** An admission's part in a shared job: it leads and pays, it joined for nothing, or it left (`detached`). */
export const shareRoleSchema = z.enum(["lead", "joined", "detached"]);
export type ShareRole = z.infer<typeof shareRoleSchema>;

export const linksSchema = z.object({
  /** Set once, by the first request that saw the job's end. */
  kept: z.array(mediaEntrySchema),
  removed: z.array(z.enum(mediaFields)),
  /** KV has them. */
  written: z.boolean(),
  /** Keys of removed ones that KV may still have. */
  undeleted: z.array(mediaKeySchema).default([]),
  /** Since when KV is to be told something. */
  owedSince: z.int().default(0),
});
export type KeptLinks = z.infer<typeof linksSchema>;

export const noLinks: KeptLinks = { kept: [], removed: [], written: true, undeleted: [], owedSince: 0 };

/** The job as others of the same request know it, and the end that they were told last. */
export const sharingSchema = z.object({ flight: z.string(), ref: z.string(), told: z.string().optional() });
export type Sharing = z.infer<typeof sharingSchema>;

/** A job may last as long as its ttl, and is kept upstream for a while after its end. */
const openMs = limits.ttlMs.max + limits.runRetentionMs;

/** Kept until no request can see the job's end any more: a late one must get the same links, and must not pay twice. */
export function keptUntil(now: number, links: readonly MediaEntry[] = []): number {
  return Math.max(now + openMs, ...links.map(({ media }) => media.expiresAt));
}

export function keep(links: KeptLinks, media: readonly MediaEntry[], now: number): KeptLinks {
  if (links.kept.length > 0 || media.length === 0) return links;
  return { ...links, kept: [...media], written: false, owedSince: now };
}

export function remove(links: KeptLinks, field: MediaField, key: string, now: number): KeptLinks {
  const removed = [...new Set([...links.removed, field])];
  return { ...links, removed, undeleted: [...new Set([...links.undeleted, key])], owedSince: now };
}

/** What KV is to be told. */
export interface Owed {
  readonly unwritten: readonly MediaEntry[];
  readonly undeleted: readonly string[];
}

export function owedOf(links: KeptLinks, now: number): Owed {
  const unwritten = links.written ? [] : left(links).filter(({ media }) => media.expiresAt > now);
  return { unwritten, undeleted: links.undeleted };
}

/** KV was told; meanwhile more may be owed. */
export function paid(links: KeptLinks, { unwritten, undeleted }: Owed): KeptLinks {
  return {
    ...links,
    written: links.written || unwritten.length > 0,
    undeleted: links.undeleted.filter((key) => !undeleted.includes(key)),
  };
}

/** What its owner has not deleted. */
export function left({ kept, removed }: KeptLinks): readonly MediaEntry[] {
  return kept.filter(({ media }) => !removed.includes(media.field));
}

export function find(links: KeptLinks, field: MediaField): Media | undefined {
  return left(links).find(({ media }) => media.field === field)?.media;
}

/**
 * The answer that other requests may get: it has exactly one link, which was not deleted, and all of its output is
 * known.
 */
export function reusableOf({ kept: [only, ...others], removed }: KeptLinks, status: string): MediaEntry | undefined {
  return status === "COMPLETED" && only?.media.others && others.length + removed.length === 0 ? only : undefined;
}
