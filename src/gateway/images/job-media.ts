// One owner's job as its `GENERATION` object knows it: the media that it ended with, first word counts, and who rides on it.
import { limits } from "../../contract/limits.ts";
import type { MediaField } from "../../contract/media-fields.ts";
import type { Media } from "./media.ts";
import { endOf } from "./media-key.ts";

export interface Keyed {
  readonly key: string;
  readonly media: Media;
}

/** A key that an answer may carry, and when its link ends, as far as that is known. */
export interface Handed {
  readonly key: string;
  readonly expiresAt: number;
}

/** How an admission came to the job: it leads it, rides along for nothing, or has got off. */
export type Rider = "lead" | "joined" | "detached";

export interface JobState {
  /** Set once, by whoever saw the job's end first. */
  readonly kept: readonly Keyed[];
  /** Keys that an answer handed out while it streamed: what they lead to is known at its end. */
  readonly reserved?: Readonly<Partial<Record<MediaField, string>>>;
  /** The tag of the job's own object, where links went out before its name was known: that one says what is left. */
  readonly of?: string;
  /** KV has them. */
  readonly written: boolean;
  readonly removed: readonly MediaField[];
  readonly riders: Readonly<Record<string, Rider>>;
  /** Its flight's name, where other requests may have the answer too. */
  readonly flight: string | null;
  readonly ref: string | null;
}

export const unknownJob: JobState = { kept: [], written: false, removed: [], riders: {}, flight: null, ref: null };

export interface Expected {
  readonly admission: string;
  readonly rider: "lead" | "joined";
  readonly flight: string;
  readonly ref: string;
}

/** A job may last as long as its ttl, and is kept upstream for a while after its end. */
const openMs = limits.ttlMs.max + limits.runRetentionMs;

export function expect(state: JobState, { admission, rider, flight, ref }: Expected): JobState {
  return { ...state, flight, ref, riders: { ...state.riders, [admission]: rider } };
}

/** Whoever comes second is told what the first one got. */
export function reserve(state: JobState, field: MediaField, key: string): JobState {
  return state.reserved?.[field] === undefined ? { ...state, reserved: { ...state.reserved, [field]: key } } : state;
}

/** The answer was no job's end. */
export function withdraw({ reserved: _, ...state }: JobState): JobState {
  return state;
}

export function keep(state: JobState, media: readonly Keyed[]): JobState {
  if (state.kept.length > 0 || media.length === 0) return state;
  return { ...state, kept: media.map((one) => underReserved(one, state)) };
}

/** A link may end before its key does, not after it: who looks later than the first does not make it longer. */
function underReserved(one: Keyed, { reserved }: JobState): Keyed {
  const key = reserved?.[one.media.field];
  if (key === undefined) return one;
  return { key, media: { ...one.media, expiresAt: Math.min(one.media.expiresAt, endOf(key)) } };
}

export function detach(state: JobState, admission: string): JobState {
  return { ...state, riders: { ...state.riders, [admission]: "detached" } };
}

export function remove(state: JobState, field: MediaField): JobState {
  return { ...state, removed: [...state.removed, field] };
}

/** What its owner has not deleted. */
export function left({ kept, removed }: JobState): readonly Keyed[] {
  return kept.filter(({ media }) => !removed.includes(media.field));
}

export function find(state: JobState, field: MediaField): Media | undefined {
  return left(state).find(({ media }) => media.field === field)?.media;
}

/** Kept as long as its last link lives: nobody who sees the end late may make another link of it. */
export function forgetAt({ kept }: JobState, now: number): number {
  return Math.max(now + openMs, ...kept.map(({ media }) => media.expiresAt));
}
