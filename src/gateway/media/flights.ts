// The Worker's side of a flight: joins it, waits for the upstream's id, and asks again if the object restarted.
import type { Config } from "../../config.ts";
import { answersWithinMs, isOverloaded, type Remote, repeated } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import { inTime, TookTooLong } from "../../isolate/in-time.ts";
import { type Failure, type Place, type Sharing, type Start, startMs } from "./flight.ts";
import { type JobMedia, jobMediaObject } from "./job-media.ts";
import type { ShareRole } from "./kept-links.ts";
import { type JobOfOwner, type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { type SharedRequest, sharedRequestObject } from "./shared-request.ts";

const holdMs = 20_000;
/** An object that restarts loses its calls, and answers soon again. */
const pauseMs = 50;
const maxAsked = 20;
/** In characters; a longer request is not held for a retry. */
const maxRequestLength = 64 * 1024;
const rememberedCharacters = 256 * 1024;

export class Flights {
  readonly #keys: MediaKeys;
  readonly #jobs: DurableObjectNamespace<JobMedia>;
  readonly #requests: DurableObjectNamespace<SharedRequest>;
  /** Requests (by name) of which one went alone a moment ago. */
  readonly #alone = new BoundedMemory<true>(rememberedCharacters);

  constructor(config: Config, env: Pick<Env, "JOB_MEDIA" | "SHARED_REQUEST">) {
    this.#keys = mediaKeysOf(config);
    this.#jobs = env.JOB_MEDIA;
    this.#requests = env.SHARED_REQUEST;
  }

  /**
   * Undefined if the object cannot be reached: then the request goes alone. Per isolate and `startMs` only one request
   * may do so; further ones are refused with a `Retry-After`, since each would pay for a job of its own.
   */
  async join(name: string, admission: string): Promise<Place | undefined> {
    try {
      return await repeated(() => this.#request(name).board(admission));
    } catch (error) {
      const now = Date.now();
      if (isOverloaded(error) || this.#alone.get(name, now)) throw tooManyAsk;
      this.#alone.set(name, true, now + startMs);
      return undefined;
    }
  }

  /** The leader still waits for the upstream and must not be replaced. */
  async keepAlive(name: string, leader: string): Promise<void> {
    await this.#request(name).stay(leader);
  }

  /** The upstream took the leader's job: its followers may follow it. */
  async start(name: string, leader: string, upstreamId: string, request: string): Promise<void> {
    const held = request.length <= maxRequestLength ? request : null;
    await repeated(() => this.#request(name).takeOff(leader, upstreamId, held));
  }

  /** If the flight has forgotten the job, it may have been shared: then it must not be retried for all. */
  async sharingOf(job: JobOfOwner, admission: string): Promise<Sharing> {
    const sharing = await this.#job(job).sharing(admission);
    if (!sharing) return "alone";
    return (await this.#request(sharing.flight).sharingOf(job.upstreamId)) ?? { request: null };
  }

  /** Whether nobody shares the job. Then nobody joins it any more. */
  async close(job: JobOfOwner, admission: string): Promise<boolean> {
    const sharing = await this.#job(job).sharing(admission);
    return !sharing || (await this.#request(sharing.flight).close(job.upstreamId)) === "alone";
  }

  /** The upstream has forgotten the job: nobody joins it any more. */
  async end(job: JobOfOwner, admission: string): Promise<void> {
    const sharing = await this.#job(job).sharing(admission);
    if (sharing) await this.#request(sharing.flight).land(job.upstreamId, undefined);
  }

  /** The leader started no job. A failure is told to all followers; without one another request leads. */
  async fail(name: string, leader: string, failure: Failure | undefined): Promise<void> {
    await repeated(() => this.#request(name).ground(leader, failure));
  }

  /** Leaves a flight whose job has not started. */
  async leaveUnstarted(name: string, admission: string): Promise<void> {
    await repeated(() => this.#request(name).leave(admission));
  }

  /**
   * The upstream's id. Undefined if the flight was given up or its leader is lost: join again. Throws the leader's
   * failure.
   */
  async awaitStart(name: string, leader: string): Promise<string | undefined> {
    for (let asked = 0; asked < maxAsked; asked++) {
      const start = await this.#ask(name, leader);
      if (start === "none") return undefined;
      if (start === "waiting") continue;
      if ("ref" in start) return start.ref;
      throw new Problem(start.failure.code, start.failure.detail);
    }
    return undefined;
  }

  async #ask(name: string, leader: string): Promise<Start> {
    try {
      return await this.#request(name, holdMs + answersWithinMs.comfort).awaitRef(leader, holdMs);
    } catch (error) {
      if (isOverloaded(error)) throw tooManyAsk;
      if (error instanceof TookTooLong) return "none";
      await scheduler.wait(pauseMs);
      return "waiting";
    }
  }

  /**
   * Notes at the job's object that this admission shares it. So the job's end reaches the flight, and a cancel finds
   * the other sharers. Called before the job is followed.
   */
  async register(name: string, job: JobOfOwner, admission: string, rider: "lead" | "joined"): Promise<void> {
    await repeated(() => this.#job(job).expect({ admission, rider, flight: name, ref: job.upstreamId }));
  }

  /**
   * Takes the admission off its job, which goes on for the others. Idempotent: the call may be repeated if its answer
   * was lost.
   */
  leave(job: JobOfOwner, admission: string): Promise<Leaving> {
    return inTime(answersWithinMs.needed, this.#leave(job, admission));
  }

  async #leave(job: JobOfOwner, admission: string): Promise<Leaving> {
    const object = this.#job(job, answersWithinMs.needed);
    const sharing = await object.sharing(admission);
    if (!sharing) return "alone";
    if (sharing.rider === "detached") return "detached";
    const left = await this.#request(sharing.flight, answersWithinMs.needed).leave(admission);
    if (left === "over") return sharing.rider === "lead" ? "alone" : "over";
    if (left === "nobody") return "alone";
    return (await object.detach(admission)) ?? "detached";
  }

  #job(job: JobOfOwner, withinMs = answersWithinMs.comfort): Remote<JobMedia> {
    return jobMediaObject(this.#jobs, this.#keys.tagOf(job), withinMs);
  }

  #request(name: string, withinMs = answersWithinMs.comfort): Remote<SharedRequest> {
    return sharedRequestObject(this.#requests, name, withinMs);
  }
}

const tooManyAsk = new Problem("UNAVAILABLE", "Too many ask for the same at the moment.", { "Retry-After": "5" });

/**
 * The role that an admission had before it left; `detached`: it had left before. `alone`: it has the job to itself.
 * `over`: it joined a job whose flight is over. Such a job may still be another's, so it must not be cancelled.
 */
export type Leaving = ShareRole | "alone" | "over";
