// GENERATION: one object a job of an owner (`media/<tag>`) and one a reusable request (`reuse/<scope>/<hash>`). Thin.
import { DurableObject } from "cloudflare:workers";
import type { MediaField } from "../../contract/media-fields.ts";
import { isFinal } from "../../contract/states.ts";
import { nameOfFault } from "../../errors.ts";
import { handOn, type Remote, remote } from "../../wire/remote.ts";
import * as flights from "./flight.ts";
import { ImageCache, type Reusable } from "./image-cache.ts";
import * as jobs from "./job-media.ts";
import type { Media } from "./media.ts";
import { endOf } from "./media-key.ts";
import { isReusableAt } from "./reuse-key.ts";
import { StoredState } from "./stored-state.ts";

/** A write of KV that failed is tried again after this. */
const retryMs = 10_000;

export type Takeoff =
  | { readonly ref: string }
  | { readonly failure: flights.Failure }
  /** The flight was given up without a reason for others, or nobody knows of it: board again. */
  | "none"
  | "waiting";

export interface Sight {
  readonly admission: string;
  readonly ref: string;
  readonly status: string;
  readonly media: readonly jobs.Keyed[];
}

export interface Concluded {
  readonly kept: readonly jobs.Keyed[];
  readonly rider: jobs.Rider | null;
}

export function jobObject(namespace: DurableObjectNamespace<Generation>, tag: string): Remote<Generation> {
  return remote<Generation>(namespace, `media/${tag}`);
}

/** The name is one of `reuseCacheKey`: the object and the entry of KV are called alike. */
export function flightObject(namespace: DurableObjectNamespace<Generation>, name: string): Remote<Generation> {
  return remote<Generation>(namespace, name);
}

export class Generation extends DurableObject<Env> {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #cache: ImageCache;
  readonly #job: StoredState<jobs.JobState>;
  readonly #flight: StoredState<flights.FlightState>;
  /** A job that ended before anybody said that it has a flight. */
  #endedAs: Sight | undefined;
  #failure: { leader: string; failure: flights.Failure } | undefined;
  #waiting = new Set<() => void>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#cache = new ImageCache(env.IMAGES);
    this.#job = new StoredState(ctx.storage, jobs.unknownJob);
    this.#flight = new StoredState(ctx.storage, flights.noFlight);
  }

  /** Told by whoever submitted, before or after the job's end. */
  expect(expected: jobs.Expected): void {
    this.#setJob(jobs.expect(this.#job.value, expected));
    if (this.#endedAs) this.#tellFlight(this.#endedAs);
  }

  /** The first word on the job's media counts, and is written to KV once. */
  conclude(sight: Sight): Concluded {
    const before = this.#job.value;
    const after = jobs.keep(before, sight.media);
    if (after !== before) {
      this.#setJob(after);
      this.ctx.waitUntil(this.#write());
    }
    this.#endedAs = sight;
    if (after.flight !== null && isFinal(sight.status)) this.#tellFlight(sight);
    return { kept: after.kept, rider: after.riders[sight.admission] ?? null };
  }

  /** Of an answer that streams: the key of its link, before anybody knows how it ends. */
  reserve(field: MediaField, key: string): jobs.Handed {
    const { kept } = this.#job.value;
    const known = kept.find(({ media }) => media.field === field);
    if (known) return { key: known.key, expiresAt: known.media.expiresAt };
    const state = jobs.reserve(this.#job.value, field, key);
    if (state !== this.#job.value) this.#setJob(state);
    const reserved = state.reserved?.[field] ?? key;
    return { key: reserved, expiresAt: endOf(reserved) };
  }

  withdraw(): void {
    this.#setJob(jobs.withdraw(this.#job.value));
  }

  /** Links that were handed out before the job's own name was known: its own object tells what they lead to. */
  mirror(of: string, kept: readonly jobs.Keyed[]): void {
    if (this.#job.value.kept.length === 0) this.#setJob({ ...this.#job.value, of, kept, written: true });
  }

  async find(field: MediaField): Promise<Media | undefined> {
    const { of } = this.#job.value;
    if (of === undefined) return jobs.find(this.#job.value, field);
    const media = await jobObject(this.env.GENERATION, of).find(field);
    return media && handOn(media);
  }

  /** The flight to leave; undefined where the admission rides on none. */
  flightOf(admission: string): string | undefined {
    const { flight, riders } = this.#job.value;
    return flight !== null && riders[admission] ? flight : undefined;
  }

  /** How the admission came to the job, and which flight it was; undefined for a job that no other request may join. */
  sharing(admission: string): { flight: string; rider: jobs.Rider } | undefined {
    const { flight, riders } = this.#job.value;
    const rider = riders[admission];
    return flight !== null && rider ? { flight, rider } : undefined;
  }

  riderOf(admission: string): jobs.Rider | undefined {
    return this.#job.value.riders[admission];
  }

  detach(admission: string): jobs.Rider | undefined {
    const rider = this.#job.value.riders[admission];
    if (rider) this.#setJob(jobs.detach(this.#job.value, admission));
    return rider;
  }

  /** The reuse entry that is to go with it. */
  async removeMedia(field: MediaField): Promise<string | undefined> {
    const { of } = this.#job.value;
    if (of !== undefined) return jobObject(this.env.GENERATION, of).removeMedia(field);
    this.#setJob(jobs.remove(this.#job.value, field));
    return this.#job.value.flight ?? undefined;
  }

  board(admission: string): flights.Boarded {
    const { state, boarded } = flights.board(this.#flight.value, admission, this.clock());
    if (state !== this.#flight.value) this.#setFlight(state);
    return boarded;
  }

  takeOff(leader: string, ref: string, request: string | null): void {
    this.#setFlight(flights.takeOff(this.#flight.value, leader, ref, request, this.clock()));
  }

  sharedRequest(ref: string): string | null | undefined {
    return flights.sharedRequest(this.#flight.value, ref);
  }

  ground(leader: string, failure: flights.Failure | undefined): void {
    if (this.#flight.value.flight?.leader !== leader) return;
    this.#failure = failure && { leader, failure };
    this.#setFlight(flights.ground(this.#flight.value, leader));
  }

  /** Held until the upstream's id is known; asked again by the Worker where it was held too long. */
  async awaitRef(leader: string, holdMs: number): Promise<Takeoff> {
    const known = this.#takeoffOf(leader);
    if (known !== "waiting") return known;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimeout(resolve, holdMs);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
    return this.#takeoffOf(leader);
  }

  #takeoffOf(leader: string): Takeoff {
    const { flight, landed } = this.#flight.value;
    if (landed?.leader === leader) return { ref: landed.ref };
    if (flight && flight.leader === leader) return flight.ref === null ? "waiting" : { ref: flight.ref };
    return this.#failure && this.#failure.leader === leader ? { failure: this.#failure.failure } : "none";
  }

  land(ref: string, entry: Reusable | undefined): void {
    const now = this.clock();
    const reusable = entry && isReusableAt(entry.media, now) ? entry : undefined;
    const landed = flights.land(this.#flight.value, ref, reusable, now);
    if (landed === this.#flight.value) return;
    this.#setFlight(landed);
    const name = this.ctx.id.name;
    if (reusable && name !== undefined) this.ctx.waitUntil(comfort(this.#cache.putReusable(name, reusable, now)));
  }

  /** Whether nobody rides any more. */
  leave(admission: string): boolean {
    const { state, last } = flights.leave(this.#flight.value, admission);
    this.#setFlight(state);
    return last;
  }

  forgetFresh(): void {
    this.#setFlight({ ...this.#flight.value, fresh: null });
  }

  /** Never throws: what could not be written is tried again, what is over is forgotten. */
  override async alarm(): Promise<void> {
    // A flight's object has no job, and keeps its flight in the same row.
    const { kept = [], written } = this.#job.value;
    if (kept.length > 0 && !written && kept.some(({ media }) => media.expiresAt > this.clock())) {
      await this.#write();
      return;
    }
    await this.#job.forget();
    await this.#flight.forget();
  }

  async #write(): Promise<void> {
    const now = this.clock();
    try {
      await Promise.all(jobs.left(this.#job.value).map(({ key, media }) => this.#cache.put(key, media, now)));
      this.#setJob({ ...this.#job.value, written: true });
    } catch {
      console.warn(JSON.stringify({ binding: "IMAGES", problem: "a link was not written, and will be" }));
      this.#setJob(this.#job.value);
    }
  }

  #tellFlight({ ref, status }: Sight): void {
    const { flight, kept, removed } = this.#job.value;
    if (flight === null) return;
    const [only, ...others] = kept;
    const reusable = status === "COMPLETED" && only?.media.others && others.length + removed.length === 0;
    this.ctx.waitUntil(comfort(flightObject(this.env.GENERATION, flight).land(ref, reusable ? only : undefined)));
  }

  #setJob(state: jobs.JobState): void {
    const now = this.clock();
    const unwritten = state.kept.length > 0 && !state.written;
    this.#job.set(state, unwritten ? now + retryMs : jobs.forgetAt(state, now));
  }

  #setFlight(state: flights.FlightState): void {
    this.#flight.set(state, flights.forgetAt(state, this.clock()));
    if (state.flight?.ref === null) return;
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
