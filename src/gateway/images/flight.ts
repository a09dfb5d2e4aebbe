// One flight a request: the first to board leads it upstream, who asks the same meanwhile rides along. Pure but for time.
import type { ErrorCode } from "../../errors.ts";
import type { Reusable } from "./image-cache.ts";
import { isReusableAt } from "./reuse-key.ts";

/** KV tells for a minute that there is nothing after it was asked too early. */
const freshMs = 2 * 60_000;
/** Longer than any submit may take: a leader that has not told the upstream's id by then is lost. */
const takeoffMs = 60_000;
/** Whoever boards later than this could find that the upstream has forgotten the job. */
const boardingMs = 15 * 60_000;

export interface Failure {
  readonly code: ErrorCode;
  readonly detail: string;
}

export interface Flight {
  readonly leader: string;
  readonly ref: string | null;
  readonly since: number;
  readonly riders: readonly string[];
}

export interface FlightState {
  readonly flight: Flight | null;
  readonly fresh: { readonly entry: Reusable; readonly until: number } | null;
  /** The last job that ended: riders that come late still find it, and tell of an end that is known. */
  readonly landed: { readonly leader: string | null; readonly ref: string } | null;
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
    return { state: { ...state, flight: { ...flight, riders } }, boarded: { role: "join", leader: flight.leader } };
  }
  const begun = { leader: admission, ref: null, since: now, riders: [admission] };
  return { state: { ...state, flight: begun }, boarded: { role: "lead" } };
}

function isBoarding({ ref, since }: Flight, now: number): boolean {
  return now < since + (ref === null ? takeoffMs : boardingMs);
}

export function takeOff(state: FlightState, leader: string, ref: string): FlightState {
  if (state.flight?.leader !== leader) return state;
  // A job's end may be told before its beginning is: nobody boards what is over.
  if (state.landed?.ref === ref) return { ...state, flight: null, landed: { leader, ref } };
  return { ...state, flight: { ...state.flight, ref } };
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
  return { flight: ended ? null : state.flight, fresh, landed: { leader: ended?.leader ?? null, ref } };
}

export function leave(state: FlightState, admission: string): { state: FlightState; last: boolean } {
  const { flight } = state;
  if (!flight?.riders.includes(admission)) return { state, last: true };
  const riders = flight.riders.filter((rider) => rider !== admission);
  if (riders.length === 0) return { state: { ...state, flight: null }, last: true };
  return { state: { ...state, flight: { ...flight, riders } }, last: false };
}

/** When nothing of it counts any more. */
export function forgetAt({ flight, fresh }: FlightState, now: number): number {
  return Math.max(now + takeoffMs, fresh?.until ?? 0, flight ? flight.since + boardingMs : 0);
}
