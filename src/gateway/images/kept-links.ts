// What one owner's job ended with: the first word counts, and what its owner deleted stays deleted. Pure.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { type MediaField, mediaFields } from "../../contract/media-fields.ts";
import { type Media, mediaSchema } from "./media.ts";
import { endOf, mediaKeySchema } from "./media-key.ts";

export const keyedSchema = z.object({ key: mediaKeySchema, media: mediaSchema });
export type Keyed = z.infer<typeof keyedSchema>;

/** A key that an answer may carry, and when its link ends, as far as that is known. */
export interface Handed {
  readonly key: string;
  readonly expiresAt: number;
}

/** How an admission came to the job: it leads it, rides along for nothing, or has got off. */
export const riderSchema = z.enum(["lead", "joined", "detached"]);
export type Rider = z.infer<typeof riderSchema>;

/** Keys that an answer handed out while it streamed: what they lead to is known at its end. */
export const reservedSchema = z.partialRecord(z.enum(mediaFields), mediaKeySchema);
export type Reserved = z.infer<typeof reservedSchema>;

export const linksSchema = z.object({
  /** Set once, by whoever saw the job's end first. */
  kept: z.array(keyedSchema),
  removed: z.array(z.enum(mediaFields)),
  /** KV has them. */
  written: z.boolean(),
  /** Keys of removed ones that KV may still have. */
  undeleted: z.array(mediaKeySchema).default([]),
  /** Since when KV is to be told something. */
  owedSince: z.int().default(0),
  /** The tag of the job's own object, where links went out before its name was known: that one says what is left. */
  of: z.string().optional(),
});
export type KeptLinks = z.infer<typeof linksSchema>;

export const noLinks: KeptLinks = { kept: [], removed: [], written: true, undeleted: [], owedSince: 0 };

/** The job as others of the same request know it, and the end that they were told last. */
export const sharingSchema = z.object({ flight: z.string(), ref: z.string(), told: z.string().optional() });
export type Sharing = z.infer<typeof sharingSchema>;

/** A job may last as long as its ttl, and is kept upstream for a while after its end. */
const openMs = limits.ttlMs.max + limits.runRetentionMs;

/** Nobody who sees the end late may make another link of it, nor pay for what another paid for. */
export function keptUntil(now: number, links: readonly Keyed[] = []): number {
  return Math.max(now + openMs, ...links.map(({ media }) => media.expiresAt));
}

export function keep(links: KeptLinks, media: readonly Keyed[], reserved: Reserved, now: number): KeptLinks {
  if (links.kept.length > 0 || media.length === 0) return links;
  return { ...links, kept: media.map((one) => underReserved(one, reserved)), written: false, owedSince: now };
}

export function remove(links: KeptLinks, field: MediaField, key: string, now: number): KeptLinks {
  const removed = [...new Set([...links.removed, field])];
  return { ...links, removed, undeleted: [...new Set([...links.undeleted, key])], owedSince: now };
}

/** What KV is to be told. */
export interface Owed {
  readonly unwritten: readonly Keyed[];
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

/** A link may end before its key does, not after it: who looks later than the first does not make it longer. */
function underReserved(one: Keyed, reserved: Reserved): Keyed {
  const key = reserved[one.media.field];
  if (key === undefined) return one;
  return { key, media: { ...one.media, expiresAt: Math.min(one.media.expiresAt, endOf(key)) } };
}

/** What its owner has not deleted. */
export function left({ kept, removed }: KeptLinks): readonly Keyed[] {
  return kept.filter(({ media }) => !removed.includes(media.field));
}

export function find(links: KeptLinks, field: MediaField): Media | undefined {
  return left(links).find(({ media }) => media.field === field)?.media;
}

/** The answer that other requests may have: one link, all of whose answer is known, that nobody has deleted. */
export function reusableOf({ kept: [only, ...others], removed }: KeptLinks, status: string): Keyed | undefined {
  return status === "COMPLETED" && only?.media.others && others.length + removed.length === 0 ? only : undefined;
}
