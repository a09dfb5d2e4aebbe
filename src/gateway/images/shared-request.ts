// SHARED_REQUEST: one object a reusable request, named by `reuseCacheKey`: who leads it upstream, who rides along, and what
// it was answered a moment ago, while KV may still tell that there is nothing. Thin.
import { DurableObject } from "cloudflare:workers";
import { nameOfFault } from "../../errors.ts";
import { type Remote, remote } from "../../wire/remote.ts";
import { ExpiringRows } from "./expiring-rows.ts";
import * as flights from "./flight.ts";
import { ImageCache, type Reusable, reusableSchema } from "./image-cache.ts";
import { isReusableAt } from "./reuse-key.ts";

/** The rows' names. An admission has no slash. */
const row = {
  fresh: "fresh",
  flight: (leader: string) => `flight/${leader}`,
  /** All who ever rode, and of them those who still do, and those who got off. */
  riders: (leader: string) => `rider/${leader}/`,
  aboard: (leader: string, admission = "") => `rider/${leader}/aboard/${admission}`,
  left: (leader: string, admission: string) => `rider/${leader}/left/${admission}`,
  ended: (ref: string) => `ended/${ref}`,
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

export class SharedRequest extends DurableObject<Env> {
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

  board(admission: string): flights.Boarded {
    const now = this.clock();
    const fresh = this.#rows.get(row.fresh, reusableSchema);
    if (fresh && isReusableAt(fresh.media, now)) return { role: "served", entry: fresh };
    const [boarding] = this.#flights().filter((flight) => flights.isBoarding(flight, now));
    const flight = boarding ?? { leader: admission, ref: null, since: now, isShared: false, request: null };
    const isShared = flight.isShared || flight.leader !== admission;
    if (!boarding || isShared !== flight.isShared) this.#put({ ...flight, isShared });
    this.#rows.put(row.aboard(flight.leader, admission), true, flights.flightEnd(flight));
    return boarding ? { role: "join", leader: flight.leader } : { role: "lead" };
  }

  takeOff(leader: string, ref: string, request: string | null): void {
    const known = this.#flight(leader);
    if (!known) return;
    const flight = { ...known, ref, request };
    // A job's end may be told before its beginning is: nobody boards what is over.
    if (this.#rows.has(row.ended(ref))) this.#end(flight, ref, true);
    else {
      this.#put(flight);
      this.#rows.extendAll(row.riders(leader), flights.flightEnd(flight));
    }
    this.#wake();
  }

  /** Asked before a retry. Undefined where nobody knows any more. */
  sharingOf(ref: string): flights.Sharing | undefined {
    const ended = this.#ended(ref);
    const job = this.#flights().find((one) => one.ref === ref) ?? ended;
    if (job?.isShared === undefined) return undefined;
    if (job.isShared) return { request: job.request };
    // It may run again as long as before, and be retried again.
    if (ended) this.#rows.put(row.ended(ref), ended, this.clock() + flights.flightMs);
    return "alone";
  }

  /** The leader never got off the ground. */
  ground(leader: string, failure: flights.Failure | undefined): void {
    if (!this.#rows.has(row.flight(leader))) return;
    this.#failure = failure && { leader, failure };
    this.#remove(leader);
    this.#wake();
  }

  /** Held until the upstream's id is known, or the leader lost; asked again by the Worker where it was held too long. */
  async awaitRef(leader: string, holdMs: number): Promise<flights.Takeoff> {
    const known = this.#takeoffOf(leader);
    const flight = this.#flight(leader);
    if (known !== "waiting" || !flight) return known;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimeout(resolve, Math.min(holdMs, flights.flightEnd(flight) - this.clock()));
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
    return this.#takeoffOf(leader);
  }

  /** The job is at its end; with an answer that others may have it is kept for them. */
  land(ref: string, entry: Reusable | undefined): void {
    const now = this.clock();
    const mayServe = entry && isReusableAt(entry.media, now) && !this.#rows.has(row.deleted(entry.key));
    const reusable = mayServe ? entry : undefined;
    if (this.#rows.has(row.ended(ref)) && !reusable) return;
    if (reusable) this.#rows.put(row.fresh, reusable, now + flights.freshMs);
    // An older flight's end is not the end of one that began since.
    this.#end(
      this.#flights().find((flight) => flight.ref === ref),
      ref,
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
    const rode = ({ leader }: flights.Flight) =>
      [row.aboard(leader, admission), row.left(leader, admission)].some((name) => this.#rows.has(name));
    const flight = this.#flights().find(rode);
    if (!flight) return "over";
    this.#rows.put(row.left(flight.leader, admission), true, flights.flightEnd(flight));
    this.#rows.remove(row.aboard(flight.leader, admission));
    // Those who stay would wait for a leader that has left.
    const isLed = flight.ref !== null || flight.leader !== admission;
    if (isLed && this.#rows.hasAny(row.aboard(flight.leader))) return "others";
    if (flight.ref === null) this.#remove(flight.leader);
    else this.#end(flight, flight.ref, true);
    this.#wake();
    return "nobody";
  }

  /**
   * Its owner deleted the link: the answer serves nobody any more, also where it is still on its way here. False where a
   * write of KV that is under way may bring it back: asked again, it goes again. Undefined where KV refuses.
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

  /** The newest first: an older one may still be under way when nobody boards it any more. */
  #flights(): flights.Flight[] {
    return this.#rows.list(row.flight(""), flights.flightSchema).sort((one, other) => other.since - one.since);
  }

  #flight(leader: string): flights.Flight | undefined {
    return this.#rows.get(row.flight(leader), flights.flightSchema);
  }

  #put(flight: flights.Flight): void {
    this.#rows.put(row.flight(flight.leader), flight, flights.flightEnd(flight));
  }

  #end(flight: flights.Flight | undefined, ref: string, mayBeRetried: boolean): void {
    const { leader, isShared, request = null } = flight ?? {};
    const ended = { ref, leader, isShared, request: isShared ? request : null };
    const isAsked = mayBeRetried && isShared !== undefined;
    this.#rows.put(row.ended(ref), ended, this.clock() + (isAsked ? flights.retryableMs : flights.endedMs));
    this.#rows.keepLast(row.ended(""), flights.maxEnded);
    if (flight) this.#remove(flight.leader);
  }

  #ended(ref: string): flights.Ended | undefined {
    return this.#rows.get(row.ended(ref), flights.endedSchema);
  }

  #remove(leader: string): void {
    this.#rows.removeAll(row.riders(leader));
    this.#rows.remove(row.flight(leader));
  }

  #takeoffOf(leader: string): flights.Takeoff {
    const flight = this.#flight(leader);
    if (flight) return flight.ref === null ? "waiting" : { ref: flight.ref };
    const landed = this.#rows.list(row.ended(""), flights.endedSchema).find((ended) => ended.leader === leader);
    if (landed) return { ref: landed.ref };
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
