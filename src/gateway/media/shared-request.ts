// SHARED_REQUEST: one object per reusable request, named by `reuseCacheKey`. It knows who leads the request upstream
// and who follows, and for a while the last answer, since KV may still remember a miss.
import { CheckedObject } from "../../durable/checked-object.ts";
import { type Remote, remote } from "../../durable/remote.ts";
import { nameOfFault } from "../../errors.ts";
import { ExpiringRows } from "./expiring-rows.ts";
import * as flights from "./flight.ts";
import { ImageCache, type Reusable, reusableSchema } from "./image-cache.ts";
import { isReusableAt } from "./reuse-key.ts";

/** The rows' names. An admission has no slash. */
const row = {
  fresh: "fresh",
  flight: (leader: string) => `flight/${leader}`,
  /** All who ever took part: those who still do, and those who left. */
  riders: (leader: string) => `rider/${leader}/`,
  aboard: (leader: string, admission = "") => `rider/${leader}/aboard/${admission}`,
  left: (leader: string, admission: string) => `rider/${leader}/left/${admission}`,
  ended: (upstreamId: string) => `ended/${upstreamId}`,
  deleted: (key: string) => `deleted/${key}`,
};

/** The name is one of `reuseCacheKey`: the object and the entry of KV are called alike. */
export function sharedRequestObject(
  namespace: DurableObjectNamespace<SharedRequest>,
  name: string,
  withinMs: number,
): Remote<SharedRequest> {
  return remote<SharedRequest>(namespace, name, withinMs);
}

export class SharedRequest extends CheckedObject {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #cache: ImageCache;
  readonly #rows: ExpiringRows;
  #failure: { leader: string; failure: flights.Failure } | undefined;
  #waiting = new Set<() => void>();
  /** Writes of KV that are under way. */
  #writes = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#cache = new ImageCache(env.IMAGES);
    this.#rows = new ExpiringRows(ctx, "shared-request", () => this.clock());
  }

  /** Idempotent: the call may be repeated if its answer was lost. */
  board(admission: string): flights.Place {
    const now = this.clock();
    const fresh = this.#rows.get(row.fresh, reusableSchema);
    if (fresh && isReusableAt(fresh.media, now)) return { role: "served", entry: fresh };
    const [joinable] = this.#flights().filter((flight) => flights.isJoinable(flight, now));
    const flight = joinable ?? { leader: admission, ref: null, since: now, isShared: false, request: null };
    const isShared = flight.isShared || flight.leader !== admission;
    if (!joinable || isShared !== flight.isShared) this.#put({ ...flight, isShared });
    this.#rows.put(row.aboard(flight.leader, admission), true, flights.flightEnd(flight));
    return flight.leader === admission ? { role: "lead" } : { role: "join", leader: flight.leader };
  }

  /** The leader is alive, and waits for the upstream. */
  stay(leader: string): void {
    const known = this.#flight(leader);
    if (known?.ref === null) this.#extend({ ...known, heardAt: this.clock() });
  }

  takeOff(leader: string, upstreamId: string, request: string | null): void {
    const known = this.#flight(leader);
    if (!known) return;
    const flight = { ...known, ref: upstreamId, request };
    // A job's end may be told before its start: then no other request may join it.
    if (this.#rows.has(row.ended(upstreamId))) this.#end(flight, upstreamId, true);
    else this.#extend(flight);
    this.#wake();
  }

  /** Asked before a retry. Undefined if the job is forgotten. */
  sharingOf(upstreamId: string): flights.Sharing | undefined {
    const ended = this.#ended(upstreamId);
    const job = this.#flights().find((one) => one.ref === upstreamId) ?? ended;
    if (job?.isShared === undefined) return undefined;
    if (job.isShared) return { request: job.request };
    // The retry may take as long as the first run, and fail and be retried again: so long it is remembered.
    if (ended) this.#rows.put(row.ended(upstreamId), ended, this.clock() + flights.flightMs);
    return "alone";
  }

  /** Asked before a job's life is changed. If it is alone with its job, nobody joins that any more. */
  close(upstreamId: string): flights.Sharing | undefined {
    const flight = this.#flights().find((one) => one.ref === upstreamId);
    if (flight && !flight.isShared) this.#end(flight, upstreamId, true);
    return this.sharingOf(upstreamId);
  }

  /** The leader started no job. */
  ground(leader: string, failure: flights.Failure | undefined): void {
    if (!this.#rows.has(row.flight(leader))) return;
    this.#failure = failure && { leader, failure };
    this.#remove(leader);
    this.#wake();
  }

  /** Waits until the upstream's id is known, or the leader is lost, at most `holdMs`: then the Worker asks again. */
  async awaitRef(leader: string, holdMs: number): Promise<flights.Start> {
    const known = this.#startOf(leader);
    const flight = this.#flight(leader);
    if (known !== "waiting" || !flight) return known;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimeout(resolve, Math.min(holdMs, flights.flightEnd(flight) - this.clock()));
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
    return this.#startOf(leader);
  }

  /** The job has ended. If its answer may be reused, it is kept for the next requests. */
  land(upstreamId: string, entry: Reusable | undefined): void {
    const now = this.clock();
    const mayServe = entry && isReusableAt(entry.media, now) && !this.#rows.has(row.deleted(entry.key));
    const reusable = mayServe ? entry : undefined;
    if (this.#rows.has(row.ended(upstreamId)) && !reusable) return;
    if (reusable) this.#rows.put(row.fresh, reusable, now + flights.freshMs);
    // Ends the flight of this job only: a newer one of the same request goes on.
    this.#end(
      this.#flights().find((flight) => flight.ref === upstreamId),
      upstreamId,
      !reusable,
    );
    const name = this.ctx.id.name;
    if (reusable && name !== undefined) this.ctx.waitUntil(comfort(this.#write(name, reusable, now)));
  }

  async #write(name: string, entry: Reusable, now: number): Promise<void> {
    this.#writes++;
    try {
      await this.#cache.putReusable(name, entry, now);
    } finally {
      this.#writes--;
    }
    if (this.#rows.has(row.deleted(entry.key))) await this.#cache.removeReusable(name);
  }

  /** Asked again, since an answer may be lost, it tells the same. */
  leave(admission: string): flights.Left {
    const hasRole = ({ leader }: flights.Flight) =>
      [row.aboard(leader, admission), row.left(leader, admission)].some((name) => this.#rows.has(name));
    const flight = this.#flights().find(hasRole);
    if (!flight) return "over";
    this.#rows.put(row.left(flight.leader, admission), true, flights.flightEnd(flight));
    this.#rows.remove(row.aboard(flight.leader, admission));
    // If the leader leaves before its job started, its followers would wait in vain: the flight is removed.
    const isLed = flight.ref !== null || flight.leader !== admission;
    if (isLed && this.#rows.hasAny(row.aboard(flight.leader))) return "others";
    if (flight.ref === null) this.#remove(flight.leader);
    else this.#end(flight, flight.ref, true);
    this.#wake();
    return "nobody";
  }

  /**
   * The owner deleted the link: the answer is given to nobody any more, even if it arrives here only later. False if a
   * write of KV under way may bring it back: call again. Undefined if KV refuses.
   */
  async forget(key: string): Promise<boolean | undefined> {
    this.#rows.remove(row.fresh);
    this.#rows.put(row.deleted(key), true, this.clock() + flights.freshMs);
    const isGone = this.#writes === 0;
    const name = this.ctx.id.name;
    try {
      if (name !== undefined) await this.#cache.removeReusable(name);
      return isGone;
    } catch {
      return undefined;
    }
  }

  override alarm(): Promise<void> {
    return this.#rows.ring();
  }

  /** Newest first. An older flight may still be under way although no request joins it any more. */
  #flights(): flights.Flight[] {
    return this.#rows.list(row.flight(""), flights.flightSchema).sort((one, other) => other.since - one.since);
  }

  #flight(leader: string): flights.Flight | undefined {
    return this.#rows.get(row.flight(leader), flights.flightSchema);
  }

  #put(flight: flights.Flight): void {
    this.#rows.put(row.flight(flight.leader), flight, flights.flightEnd(flight));
  }

  /** Prolongs the flight's row and those of its followers. */
  #extend(flight: flights.Flight): void {
    this.#put(flight);
    this.#rows.extendAll(row.riders(flight.leader), flights.flightEnd(flight));
  }

  #end(flight: flights.Flight | undefined, upstreamId: string, mayBeRetried: boolean): void {
    const { leader, isShared, request = null } = flight ?? {};
    const ended = { ref: upstreamId, leader, isShared, request: isShared ? request : null };
    const isAsked = mayBeRetried && isShared !== undefined;
    this.#rows.put(row.ended(upstreamId), ended, this.clock() + (isAsked ? flights.retryableMs : flights.endedMs));
    this.#rows.keepLast(row.ended(""), flights.maxEnded);
    if (flight) this.#remove(flight.leader);
  }

  #ended(upstreamId: string): flights.Ended | undefined {
    return this.#rows.get(row.ended(upstreamId), flights.endedSchema);
  }

  #remove(leader: string): void {
    this.#rows.removeAll(row.riders(leader));
    this.#rows.remove(row.flight(leader));
  }

  #startOf(leader: string): flights.Start {
    const flight = this.#flight(leader);
    if (flight) return flight.ref === null ? "waiting" : { ref: flight.ref };
    const ended = this.#rows.list(row.ended(""), flights.endedSchema).find((ended) => ended.leader === leader);
    if (ended) return { ref: ended.ref };
    return this.#failure?.leader === leader ? { failure: this.#failure.failure } : "none";
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Reuse is comfort: without it the next request is answered by the model. */
async function comfort(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    console.warn(JSON.stringify({ reuse: "not kept", error: nameOfFault(error) }));
  }
}
