// The Worker's side of a flight: boards, waits for the upstream's id, and asks again where the object restarted.
import type { Config } from "../../config.ts";
import { Problem } from "../../errors.ts";
import type { Boarded, Failure } from "./flight.ts";
import { flightObject, type Generation, jobObject, type Takeoff } from "./generation.ts";
import { type JobOfOwner, type MediaKeys, mediaKeysOf } from "./media-key.ts";

/** As long may a leader take to get its job to the upstream. */
const waitMs = 60_000;
const holdMs = 20_000;
const pauseMs = 50;
/** In characters; a longer request is not held for a retry. */
const maxRequestLength = 64 * 1024;

export class Flights {
  readonly #keys: MediaKeys;
  readonly #generation: DurableObjectNamespace<Generation>;

  constructor(config: Config, generation: DurableObjectNamespace<Generation>) {
    this.#keys = mediaKeysOf(config);
    this.#generation = generation;
  }

  board(name: string, admission: string): Promise<Boarded> {
    return flightObject(this.#generation, name).board(admission);
  }

  /** The leader's job is the upstream's: its riders may follow it. */
  async takeOff(name: string, leader: string, ref: string, request: string): Promise<void> {
    const held = request.length <= maxRequestLength ? request : null;
    await flightObject(this.#generation, name).takeOff(leader, ref, held);
  }

  /** What was asked for a job that others share: null where that is not held any more. */
  async sharedRequest(job: JobOfOwner, admission: string): Promise<"alone" | { readonly request: string | null }> {
    const sharing = await jobObject(this.#generation, await this.#keys.tagOf(job)).sharing(admission);
    if (!sharing) return "alone";
    const request = await flightObject(this.#generation, sharing.flight).sharedRequest(job.ref);
    if (request !== undefined) return { request };
    return sharing.rider === "lead" ? "alone" : { request: null };
  }

  /** The leader did not get there. A failure is everybody's; without one somebody else leads. */
  async ground(name: string, leader: string, failure: Failure | undefined): Promise<void> {
    await flightObject(this.#generation, name).ground(leader, failure);
  }

  /** Off again before it took off. */
  async unboard(name: string, admission: string): Promise<void> {
    await flightObject(this.#generation, name).leave(admission);
  }

  /** Undefined where the flight was given up: board again. Throws what its leader met with. */
  async awaitRef(name: string, leader: string): Promise<string | undefined> {
    const deadline = Date.now() + waitMs;
    while (Date.now() < deadline) {
      const takeoff = await this.#ask(name, leader);
      if (takeoff === "none") return undefined;
      if (takeoff === "waiting") continue;
      if ("ref" in takeoff) return takeoff.ref;
      throw new Problem(takeoff.failure.code, takeoff.failure.detail);
    }
    throw new Problem("UPSTREAM_TIMEOUT", "The model service did not answer in time.");
  }

  async #ask(name: string, leader: string): Promise<Takeoff> {
    try {
      return await flightObject(this.#generation, name).awaitRef(leader, holdMs);
    } catch {
      await scheduler.wait(pauseMs);
      return "waiting";
    }
  }

  /** So that the job's end finds its flight, whoever sees it. */
  async expect(name: string, job: JobOfOwner, admission: string, rider: "lead" | "joined"): Promise<void> {
    const tag = await this.#keys.tagOf(job);
    await jobObject(this.#generation, tag).expect({ admission, rider, flight: name, ref: job.ref });
  }

  /** Whether the job goes on for others; then the admission has got off, and is told how it rode. */
  async leave(job: JobOfOwner, admission: string): Promise<"lead" | "joined" | undefined> {
    const object = jobObject(this.#generation, await this.#keys.tagOf(job));
    const name = await object.flightOf(admission);
    if (name === undefined || (await flightObject(this.#generation, name).leave(admission))) return undefined;
    const rider = await object.detach(admission);
    return rider === "lead" || rider === "joined" ? rider : undefined;
  }
}
