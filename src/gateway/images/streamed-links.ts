// The links of one answer that streams: each is handed out when its URL passes by, and leads there once the answer is whole.
import type { MediaField } from "../../contract/media-fields.ts";
import type { UpstreamJob } from "../upstream-answer.ts";
import type { Handed } from "./kept-links.ts";
import type { EndedJob, Links, Presented } from "./links.ts";

/** What is known of the job when a URL passes by: members come in the answer's own order. */
export interface Passing {
  readonly url: string;
  /** The upstream's id, where it has been said. */
  readonly ref: string | undefined;
  /** What comes later can only make it earlier. */
  readonly completedAt: number;
}

export class StreamedLinks {
  readonly #links: Links;
  readonly #job: Pick<EndedJob, "owner" | "model" | "admission">;
  readonly #origin: string | undefined;
  readonly #handed = new Map<MediaField, Promise<Handed | undefined>>();
  /** Those that went out before the upstream's id was known. */
  readonly #early = new Map<MediaField, string>();

  constructor(links: Links, job: Pick<EndedJob, "owner" | "model" | "admission">, origin: string | undefined) {
    this.#links = links;
    this.#job = job;
    this.#origin = origin;
  }

  /** What stands in the URL's place; undefined where it stays. */
  async replace(field: MediaField, passing: Passing, now: number): Promise<string | undefined> {
    const handed = this.#handed.get(field) ?? this.#hand(field, passing, now);
    this.#handed.set(field, handed);
    const known = await handed;
    return known && this.#links.shown(known.key, passing.url, this.#origin);
  }

  async #hand(field: MediaField, { url, ref, completedAt }: Passing, now: number): Promise<Handed | undefined> {
    const handed = await this.#links.reserve({ ...this.#job, ref }, { field, url, completedAt }, now);
    if (handed && ref === undefined) this.#early.set(field, handed.key);
    return handed;
  }

  /** What `output` says beside its links. */
  async members(): Promise<{ readonly expires_at: string } | undefined> {
    const handed = (await Promise.all(this.#handed.values())).filter((one) => one !== undefined);
    if (handed.length === 0) return undefined;
    return { expires_at: new Date(Math.min(...handed.map(({ expiresAt }) => expiresAt))).toISOString() };
  }

  /** The answer is whole: its links lead somewhere, or, where it was no good end, nowhere. */
  async conclude(answer: UpstreamJob, job: Omit<EndedJob, "partly" | "early">, now: number): Promise<Presented> {
    await Promise.all(this.#handed.values());
    if (answer.status !== "COMPLETED" && this.#handed.size > 0) await this.#links.withdraw(job);
    return this.#links.present(answer, { ...job, partly: true, early: this.#early }, this.#origin, now);
  }
}
