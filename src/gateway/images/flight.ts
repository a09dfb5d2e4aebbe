// One flight a request: the first to board leads it upstream, who asks the same meanwhile rides along. Pure but for time.
import { limits } from "../../contract/limits.ts";
import type { ErrorCode } from "../../errors.ts";
import type { Reusable } from "./image-cache.ts";
import { isReusableAt } from "./reuse-key.ts";

/** KV tells for a minute that there is nothing after it was asked too early. */
const freshMs = 2 * 60_000;
/** Longer than any submit may take: a leader that has not told the upstream's id by then is lost. */
const takeoffMs = 60_000;
/** Whoever boards later than this could find that the upstream has forgotten the job. */
const boardingMs = 15 * 60_000;
/** As long does the upstream keep a failed job, so that it may be retried. */
const retryableMs = limits.runRetentionMs;
/** Failed jobs of one request whose input is held at once. */
const maxFailed = 8;

export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
}

export interface Flight {
  readonly leader: string;
  readonly ref: string | null;
  readonly since: number;
  readonly riders: readonly string[];
  /** Somebody has joined it, whoever is left. */
  readonly isShared?: boolean;
  /** What was asked, in JSON, so that each may retry it alone; null where it is too long to be held. */
  readonly request?: string | null;
}

/** A job that failed for several: none of them runs it again for all. */
export interface FailedJob {
  readonly ref: string;
  readonly request: string | null;
  readonly until: number;
}

export interface FlightState {
  readonly flight: Flight | null;
  readonly fresh: { readonly entry: Reusable; readonly until: number } | null;
  /** The last job that ended: riders that come late still find it, and tell of an end that is known. */
  readonly landed: { readonly leader: string | null; readonly ref: string } | null;
  readonly failed?: readonly FailedJob[];
}

export const noFlight: FlightState = { flight: null, fresh: null, landed: null };

export type Boarded =
  | { readonly role: "lead" }
  | { readonly role: "join"; readonly leader: string }
  | { readonly role: "served"; readonly entry: Reusable };

export function board(state: FlightState, admission: string, now: number): { state: FlightState; boarded: Boarded } {
  const { fresh, flight } = state;
  if (fresh && fresh.until > now && isReusableAt(fresh.entry.media, now)) {
    return { state, boarded: { role: "served", entry: fresh.entry } };
  }
  if (flight && isBoarding(flight, now)) {
    const riders = [...new Set([...flight.riders, admission])];
    const shared = { ...flight, riders, isShared: flight.isShared || riders.length > 1 };
    return { state: { ...state, flight: shared }, boarded: { role: "join", leader: flight.leader } };
  }
  const begun = { leader: admission, ref: null, since: now, riders: [admission] };
  return { state: { ...state, flight: begun }, boarded: { role: "lead" } };
}

function isBoarding({ ref, since }: Flight, now: number): boolean {
  return now < since + (ref === null ? takeoffMs : boardingMs);
}

export function takeOff(
  state: FlightState,
  leader: string,
  ref: string,
  request: string | null,
  now: number,
): FlightState {
  if (state.flight?.leader !== leader) return state;
  const flight = { ...state.flight, ref, request };
  // A job's end may be told before its beginning is: nobody boards what is over.
  if (state.landed?.ref !== ref) return { ...state, flight };
  return { ...state, flight: null, landed: { leader, ref }, failed: failedOf(state, flight, now) };
}

/** What was asked for the job that others share; undefined for one that nobody has joined. */
export function sharedRequest({ flight, failed = [] }: FlightState, ref: string): string | null | undefined {
  if (flight?.ref === ref) return flight.isShared ? (flight.request ?? null) : undefined;
  return failed.find((job) => job.ref === ref)?.request;
}

/** What ended without an answer to be reused may be asked for again. */
function failedOf({ failed = [] }: FlightState, flight: Flight | null, now: number): readonly FailedJob[] {
  const left = failed.filter(({ until }) => until > now);
  if (!flight?.isShared || flight.ref === null) return left;
  const ended = { ref: flight.ref, request: flight.request ?? null, until: now + retryableMs };
  return [ended, ...left].slice(0, maxFailed);
}

/** The leader never got off the ground. */
export function ground(state: FlightState, leader: string): FlightState {
  return state.flight?.leader === leader ? { ...state, flight: null } : state;
}

/** An older flight's end is not the end of one that began since. */
export function land(state: FlightState, ref: string, entry: Reusable | undefined, now: number): FlightState {
  if (state.landed?.ref === ref) return state;
  const ended = state.flight?.ref === ref ? state.flight : null;
  const fresh = entry ? { entry, until: now + freshMs } : state.fresh;
  const landed = { leader: ended?.leader ?? null, ref };
  const failed = failedOf(state, entry ? null : ended, now);
  return { flight: ended ? null : state.flight, fresh, landed, failed };
}

export function leave(state: FlightState, admission: string): { state: FlightState; last: boolean } {
  const { flight } = state;
  if (!flight?.riders.includes(admission)) return { state, last: true };
  const riders = flight.riders.filter((rider) => rider !== admission);
  if (riders.length === 0) return { state: { ...state, flight: null }, last: true };
  return { state: { ...state, flight: { ...flight, riders } }, last: false };
}

/** When nothing of it counts any more. */
export function forgetAt({ flight, fresh, failed = [] }: FlightState, now: number): number {
  const retryable = failed.map(({ until }) => until);
  return Math.max(now + takeoffMs, fresh?.until ?? 0, flight ? flight.since + boardingMs : 0, ...retryable);
}
