// A flight is one upstream job for identical requests: the first request leads (it submits the job), later ones follow
// it. Stored rows and times of it; pure.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import type { ErrorCode } from "../../errors.ts";
import { isRecent } from "../../isolate/recent.ts";
import type { Reusable } from "./image-cache.ts";

/** KV remembers a miss for a minute, so the object answers for longer than that after a job has ended. */
export const freshMs = 2 * 60_000;
/**
 * A leader must tell the upstream's id, or that it still waits for it, within this time. Otherwise it counts as lost
 * and one of its followers leads instead. If the old leader was only silent, it goes on alone with its job.
 */
export const startMs = 20_000;
/** A waiting leader says so this often: one of its messages may be lost before `startMs` is over. */
export const keepAliveMs = 8_000;
/**
 * A request does not join an older flight: the upstream may forget the job before the request has followed it to its
 * end.
 */
const joinableMs = 15 * 60_000;
/** The longest life of a job without a `policy`: its followers are remembered this long. */
export const flightMs = limits.ttlMs.default + limits.runRetentionMs;
/** How long an ended job is remembered for followers that come late. */
export const endedMs = 60_000;
/** How long the upstream keeps a failed job, which may be retried until then. */
export const retryableMs = limits.runRetentionMs;
/** How many ended jobs of one request are remembered at once. */
export const maxEnded = 8;

export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
}

export const flightSchema = z.object({
  leader: z.string(),
  ref: z.string().nullable(),
  since: z.int(),
  /** The leader's last message before its job started; absent if that was `since`. */
  heardAt: z.int().optional(),
  /** Another request has joined it, even if it left since. */
  isShared: z.boolean(),
  /** What was asked, in JSON, so that each may retry it alone; null where it is too long to be held. */
  request: z.string().nullable(),
});
export type Flight = z.infer<typeof flightSchema>;

/** A job at its end. */
export const endedSchema = z.object({
  ref: z.string(),
  leader: z.string().optional(),
  /**
   * If several requests shared the job, none of them may retry it for all. Absent if its end was told before its start.
   */
  isShared: z.boolean().optional(),
  request: z.string().nullable(),
});
export type Ended = z.infer<typeof endedSchema>;

/**
 * "alone" for a job that no other request has joined. Otherwise the shared request as JSON, or null if it is not held.
 */
export type Sharing = "alone" | { readonly request: string | null };

export type Place =
  | { readonly role: "lead" }
  | { readonly role: "join"; readonly leader: string }
  | { readonly role: "served"; readonly entry: Reusable };

export type Start =
  | { readonly ref: string }
  | { readonly failure: Failure }
  /** The flight was given up for a reason of the leader's own, its leader is lost, or it is unknown: join again. */
  | "none"
  | "waiting";

/** After a request left a flight: others go on with the job, nobody does, or the flight was over already. */
export type Left = "others" | "nobody" | "over";

export function isJoinable({ ref: upstreamId, since, heardAt = since }: Flight, now: number): boolean {
  return upstreamId === null ? isRecent(heardAt, startMs, now) : isRecent(since, joinableMs, now);
}

export function flightEnd({ ref: upstreamId, since, heardAt = since }: Flight): number {
  return upstreamId === null ? heardAt + startMs : since + flightMs;
}
