// One flight a request: the first to board leads it upstream, who asks the same meanwhile rides along. Rows and times; pure.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import type { ErrorCode } from "../../errors.ts";
import { isRecent } from "../../wire/recent.ts";
import type { Reusable } from "./image-cache.ts";

/** KV tells for a minute that there is nothing after it was asked too early. */
export const freshMs = 2 * 60_000;
/**
 * A leader that has not told the upstream's id by then is lost, and one of those who wait leads instead. One that was only slow
 * goes on alone: its job is its own.
 */
export const takeoffMs = 20_000;
/** Whoever boards later than this could find that the upstream has forgotten the job. */
const boardingMs = 15 * 60_000;
/** As long may a job last that is asked for without a policy: so long its riders are known. */
export const flightMs = limits.ttlMs.default + limits.runRetentionMs;
/** Riders that come late still find how a job ended. */
export const endedMs = 60_000;
/** As long does the upstream keep a failed job, so that it may be retried. */
export const retryableMs = limits.runRetentionMs;
/** Ended jobs of one request that are known at once, and with the failed ones what they were asked. */
export const maxEnded = 8;

export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
}

export const flightSchema = z.object({
  leader: z.string(),
  ref: z.string().nullable(),
  since: z.int(),
  /** Somebody has joined it, whoever is left. */
  isShared: z.boolean(),
  /** What was asked, in JSON, so that each may retry it alone; null where it is too long to be held. */
  request: z.string().nullable(),
});
export type Flight = z.infer<typeof flightSchema>;

/** A job at its end. */
export const endedSchema = z.object({
  ref: z.string(),
  leader: z.string().optional(),
  /** Where several had it, none of them runs it again for all. Absent where its end was told before its beginning. */
  isShared: z.boolean().optional(),
  request: z.string().nullable(),
});
export type Ended = z.infer<typeof endedSchema>;

/** A job that nobody else has joined, or what was asked for all that share it: null where that is not held. */
export type Sharing = "alone" | { readonly request: string | null };

export type Boarded =
  | { readonly role: "lead" }
  | { readonly role: "join"; readonly leader: string }
  | { readonly role: "served"; readonly entry: Reusable };

export type Takeoff =
  | { readonly ref: string }
  | { readonly failure: Failure }
  /** The flight was given up without a reason for others, its leader is lost, or nobody knows of it: board again. */
  | "none"
  | "waiting";

/** Who has got off: others go on with the job, nobody does, or the flight is over and nobody can get off. */
export type Left = "others" | "nobody" | "over";

export function isBoarding({ ref, since }: Flight, now: number): boolean {
  return isRecent(since, ref === null ? takeoffMs : boardingMs, now);
}

export function flightEnd({ ref, since }: Flight): number {
  return since + (ref === null ? takeoffMs : flightMs);
}
