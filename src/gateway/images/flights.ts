// The Worker's side of a flight: boards, waits for the upstream's id, and asks again where the object restarted.
import type { Config } from "../../config.ts";
import { Problem } from "../../errors.ts";
import { TookTooLong } from "../../wire/in-time.ts";
import { answersWithinMs, isOverloaded, type Remote, repeated } from "../../wire/remote.ts";
import type { Boarded, Failure, Sharing, Takeoff } from "./flight.ts";
import { type JobMedia, jobMediaObject } from "./job-media.ts";
import type { Rider } from "./kept-links.ts";
import { type JobOfOwner, type MediaKeys, mediaKeysOf } from "./media-key.ts";
import { type SharedRequest, sharedRequestObject } from "./shared-request.ts";

const holdMs = 20_000;
/** An object that restarts loses its calls, and answers soon again. */
const pauseMs = 50;
const maxAsked = 20;
/** In characters; a longer request is not held for a retry. */
const maxRequestLength = 64 * 1024;

export class Flights {
  readonly #keys: MediaKeys;
  readonly #jobs: DurableObjectNamespace<JobMedia>;
  readonly #requests: DurableObjectNamespace<SharedRequest>;

  constructor(config: Config, env: Pick<Env, "JOB_MEDIA" | "SHARED_REQUEST">) {
    this.#keys = mediaKeysOf(config);
    this.#jobs = env.JOB_MEDIA;
    this.#requests = env.SHARED_REQUEST;
  }

  /** Undefined where nobody can be asked: then the request goes alone. Not where too many ask: each of them would pay. */
  async board(name: string, admission: string): Promise<Boarded | undefined> {
    try {
      return await this.#request(name).board(admission);
    } catch (error) {
      if (isOverloaded(error)) throw tooManyAsk;
      return undefined;
    }
  }

  /** The leader's job is the upstream's: its riders may follow it. */
  async takeOff(name: string, leader: string, ref: string, request: string): Promise<void> {
    const held = request.length <= maxRequestLength ? request : null;
    await repeated(() => this.#request(name).takeOff(leader, ref, held));
  }

  /** A flight that has forgotten the job may have had others in it: then nobody runs it again for all. */
  async sharingOf(job: JobOfOwner, admission: string): Promise<Sharing> {
    const sharing = await this.#job(job).sharing(admission);
    if (!sharing) return "alone";
    return (await this.#request(sharing.flight).sharingOf(job.ref)) ?? { request: null };
  }

  /** The leader did not get there. A failure is everybody's; without one somebody else leads. */
  async ground(name: string, leader: string, failure: Failure | undefined): Promise<void> {
    await repeated(() => this.#request(name).ground(leader, failure));
  }

  /** Off again before it took off. */
  async unboard(name: string, admission: string): Promise<void> {
    await this.#request(name).leave(admission);
  }

  /** Undefined where the flight was given up, or its leader is lost: board again. Throws what its leader met with. */
  async awaitRef(name: string, leader: string): Promise<string | undefined> {
    for (let asked = 0; asked < maxAsked; asked++) {
      const takeoff = await this.#ask(name, leader);
      if (takeoff === "none") return undefined;
      if (takeoff === "waiting") continue;
      if ("ref" in takeoff) return takeoff.ref;
      throw new Problem(takeoff.failure.code, takeoff.failure.detail);
    }
    return undefined;
  }

  async #ask(name: string, leader: string): Promise<Takeoff> {
    try {
      return await this.#request(name, holdMs + answersWithinMs.comfort).awaitRef(leader, holdMs);
    } catch (error) {
      if (isOverloaded(error)) throw tooManyAsk;
      if (error instanceof TookTooLong) return "none";
      await scheduler.wait(pauseMs);
      return "waiting";
    }
  }

  /** So that the job's end finds its flight, whoever sees it. */
  async expect(name: string, job: JobOfOwner, admission: string, rider: "lead" | "joined"): Promise<void> {
    await this.#job(job).expect({ admission, rider, flight: name, ref: job.ref });
  }

  /** Takes the admission off a job that goes on for others. */
  async leave(job: JobOfOwner, admission: string): Promise<Leaving> {
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
 * How an admission rode that has got off; `detached` had done so before. `alone` has the job to itself. `over` has joined a job
 * whose flight is over: it may still be another's, so it is not for this one to end.
 */
export type Leaving = Rider | "alone" | "over";
