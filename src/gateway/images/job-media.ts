// JOB_MEDIA: one object a job of an owner, named by the job's tag: the links that it ended with, and who shares the job. Thin.
import { DurableObject } from "cloudflare:workers";
import type { MediaField } from "../../contract/media-fields.ts";
import { isFinal } from "../../contract/states.ts";
import { nameOfFault } from "../../errors.ts";
import { answersWithinMs, handOn, type Remote, remote } from "../../wire/remote.ts";
import { ExpiringRows } from "./expiring-rows.ts";
import { ImageCache } from "./image-cache.ts";
import * as links from "./kept-links.ts";
import type { Media } from "./media.ts";
import { endOf } from "./media-key.ts";
import { sharedRequestObject } from "./shared-request.ts";

/** A write of KV that failed is tried again after this, and ever more seldom while it fails. */
const retryMs = { min: 10_000, max: 60 * 60_000 };

/** The rows' names. */
const row = {
  links: "links",
  reserved: "reserved",
  sharing: "sharing",
  rider: (admission: string) => `rider/${admission}`,
};

export interface Sight {
  readonly admission: string;
  readonly ref: string;
  readonly status: string;
  readonly media: readonly links.Keyed[];
}

export interface Concluded {
  readonly kept: readonly links.Keyed[];
  readonly rider: links.Rider | null;
}

export interface Expected {
  readonly admission: string;
  readonly rider: "lead" | "joined";
  readonly flight: string;
  readonly ref: string;
}

export function jobMediaObject(
  namespace: DurableObjectNamespace<JobMedia>,
  tag: string,
  withinMs: number,
): Remote<JobMedia> {
  return remote<JobMedia>(namespace, tag, withinMs);
}

export class JobMedia extends DurableObject<Env> {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #cache: ImageCache;
  readonly #rows: ExpiringRows;
  /** A job that ended before anybody said that it is shared. */
  #endedAs: Sight | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#cache = new ImageCache(env.IMAGES);
    this.#rows = new ExpiringRows(
      ctx,
      "job-media",
      () => this.clock(),
      () => this.#write(),
    );
  }

  /** Told by whoever submitted, before or after the job's end. */
  expect({ admission, rider, flight, ref }: Expected): void {
    this.#put(row.rider(admission), rider);
    if (!this.#sharing) this.#put(row.sharing, { flight, ref } satisfies links.Sharing);
    if (this.#endedAs) this.#tellOthers(this.#endedAs);
  }

  /** The first word on the job's media counts, and is written to KV once. */
  conclude(sight: Sight): Concluded {
    const before = this.#links;
    const after = links.keep(before, sight.media, this.#reserved);
    if (after !== before) {
      this.#putLinks(after);
      this.#rows.remove(row.reserved);
      this.ctx.waitUntil(this.#write());
    }
    this.#endedAs = sight;
    if (isFinal(sight.status)) this.#tellOthers(sight);
    return { kept: after.kept, rider: this.riderOf(sight.admission) ?? null };
  }

  /** Of an answer that streams: the key of its link, before anybody knows how it ends. */
  reserve(field: MediaField, key: string): links.Handed {
    const known = this.#links.kept.find(({ media }) => media.field === field);
    if (known) return { key: known.key, expiresAt: known.media.expiresAt };
    const reserved = { [field]: key, ...this.#reserved };
    this.#put(row.reserved, reserved);
    const first = reserved[field] ?? key;
    return { key: first, expiresAt: endOf(first) };
  }

  /** The answer was no job's end. */
  withdraw(): void {
    this.#rows.remove(row.reserved);
  }

  /** Links that were handed out before the job's own name was known: its own object tells what they lead to. */
  mirror(of: string, kept: readonly links.Keyed[]): void {
    if (this.#links.kept.length === 0) this.#putLinks({ of, kept: [...kept], removed: [], written: true });
  }

  async find(field: MediaField): Promise<Media | undefined> {
    const kept = this.#links;
    if (kept.of === undefined) return links.find(kept, field);
    const media = await jobMediaObject(this.env.JOB_MEDIA, kept.of, answersWithinMs.asked).find(field);
    return media && handOn(media);
  }

  /** How the admission came to the job, and which request it is of; undefined for a job that no other request may join. */
  sharing(admission: string): { flight: string; rider: links.Rider } | undefined {
    const rider = this.riderOf(admission);
    return this.#sharing && rider && { flight: this.#sharing.flight, rider };
  }

  riderOf(admission: string): links.Rider | undefined {
    return this.#rows.get(row.rider(admission), links.riderSchema);
  }

  detach(admission: string): links.Rider | undefined {
    const rider = this.riderOf(admission);
    if (rider) this.#put(row.rider(admission), "detached");
    return rider;
  }

  /** The reuse entry that is to go with it. */
  async removeMedia(field: MediaField): Promise<string | undefined> {
    const kept = this.#links;
    if (kept.of !== undefined) return jobMediaObject(this.env.JOB_MEDIA, kept.of, answersWithinMs.asked).removeMedia(field);
    if (kept.kept.length > 0) this.#putLinks({ ...kept, removed: [...new Set([...kept.removed, field])] });
    return this.#sharing?.flight;
  }

  override alarm(): Promise<void> {
    return this.#rows.ring();
  }

  get #links(): links.KeptLinks {
    return this.#rows.get(row.links, links.linksSchema) ?? links.noLinks;
  }

  get #reserved(): links.Reserved {
    return this.#rows.get(row.reserved, links.reservedSchema) ?? {};
  }

  get #sharing(): links.Sharing | undefined {
    return this.#rows.get(row.sharing, links.sharingSchema);
  }

  #put(name: string, value: unknown): void {
    this.#rows.put(name, value, links.keptUntil(this.clock()));
  }

  #putLinks(kept: links.KeptLinks): void {
    this.#rows.put(row.links, kept, links.keptUntil(this.clock(), kept.kept));
  }

  /** Armed before it is tried: whatever becomes of this object, KV has the links in the end. */
  async #write(): Promise<void> {
    const kept = this.#links;
    const now = this.clock();
    const unwritten = kept.written ? [] : links.left(kept).filter(({ media }) => media.expiresAt > now);
    if (unwritten.length === 0) return;
    const failingMs = now - Math.min(...unwritten.map(({ media }) => media.completedAt));
    this.#rows.wakeAt(now + Math.min(retryMs.max, Math.max(retryMs.min, failingMs / 4)));
    try {
      await Promise.all(unwritten.map(({ key, media }) => this.#cache.put(key, media, now)));
      this.#putLinks({ ...this.#links, written: true });
    } catch {
      console.warn(JSON.stringify({ binding: "IMAGES", problem: "a link was not written, and will be" }));
    }
  }

  /** Once an end: a retry may give the job another one. */
  #tellOthers({ ref, status }: Sight): void {
    const sharing = this.#sharing;
    if (!sharing || sharing.told === status) return;
    this.ctx.waitUntil(this.#land(sharing, ref, status));
  }

  /** Reuse is comfort: where the others cannot be told, the next one to look at the job tells them. */
  async #land(sharing: links.Sharing, ref: string, status: string): Promise<void> {
    try {
      const request = sharedRequestObject(this.env.SHARED_REQUEST, sharing.flight, answersWithinMs.asked);
      await request.land(ref, links.reusableOf(this.#links, status));
      this.#put(row.sharing, { ...sharing, told: status });
    } catch (error) {
      console.warn(JSON.stringify({ flight: "not told of its end", error: nameOfFault(error) }));
    }
  }
}
