// One owner's job as its `GENERATION` object knows it: the media that it ended with, first word counts, and who rides on it.
import type { Media, MediaField } from "./media.ts";

export interface Keyed {
  readonly key: string;
  readonly media: Media;
}

/** How an admission came to the job: it leads it, rides along for nothing, or has got off. */
export type Rider = "lead" | "joined" | "detached";

export interface JobState {
  /** Set once, by whoever saw the job's end first. */
  readonly kept: readonly Keyed[];
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

/** The upstream keeps a job for half an hour after its end; a job may last a day. */
const openMs = 25 * 60 * 60 * 1000;

export function expect(state: JobState, { admission, rider, flight, ref }: Expected): JobState {
  return { ...state, flight, ref, riders: { ...state.riders, [admission]: rider } };
}

export function keep(state: JobState, media: readonly Keyed[]): JobState {
  return state.kept.length > 0 || media.length === 0 ? state : { ...state, kept: media };
}

export function detach(state: JobState, admission: string): JobState {
  return { ...state, riders: { ...state.riders, [admission]: "detached" } };
}

export function remove(state: JobState, field: MediaField): JobState {
  return { ...state, removed: [...state.removed, field] };
}

export function find({ kept, removed }: JobState, field: MediaField): Media | undefined {
  return removed.includes(field) ? undefined : kept.find(({ media }) => media.field === field)?.media;
}

/** Kept as long as its last link lives: nobody who sees the end late may make another link of it. */
export function forgetAt({ kept }: JobState, now: number): number {
  return Math.max(now + openMs, ...kept.map(({ media }) => media.expiresAt));
}
