// JOB_MEDIA: one object a job of an owner, named by the job's tag: the links that it ended with, and who shares the job. Thin.
import { DurableObject } from "cloudflare:workers";
import type { MediaField } from "../../contract/media-fields.ts";
import { isFinal } from "../../contract/states.ts";
import { nameOfFault } from "../../errors.ts";
import { isRecent } from "../../wire/recent.ts";
import { answersWithinMs, handOn, type Remote, remote } from "../../wire/remote.ts";
import { ExpiringRows } from "./expiring-rows.ts";
import { ImageCache, isShared } from "./image-cache.ts";
import * as links from "./kept-links.ts";
import type { Media } from "./media.ts";
import { endOf } from "./media-key.ts";
import { sharedRequestObject } from "./shared-request.ts";

/** What KV did not take is tried again after this, and then after as long as it has failed. */
const retryMs = { min: 10_000, max: 60 * 60_000 };

/** An isolate that makes a link to another's answer tells nobody: so long it may be about to. */
const makingMs = 30_000;

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
  /** Writes of KV that are under way. */
  #writes = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#cache = new ImageCache(env.IMAGES);
    this.#rows = new ExpiringRows(
      ctx,
      "job-media",
      () => this.clock(),
      async () => this.ctx.waitUntil(this.#tellKv()),
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
    const after = links.keep(before, sight.media, this.#reserved, this.clock());
    if (after !== before) {
      this.#putLinks(after);
      this.#rows.remove(row.reserved);
      this.ctx.waitUntil(this.#tellKv());
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
    if (this.#links.kept.length === 0) this.#putLinks({ ...links.noLinks, of, kept: [...kept] });
  }

  async find(field: MediaField): Promise<Media | undefined> {
    const kept = this.#links;
    if (kept.of === undefined) return links.find(kept, field);
    const media = await this.#other(kept.of).find(field);
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

  /** The link, and the answer to the same request with it. False where KV did not take it: the alarm asks again. */
  async remove(field: MediaField, key: string): Promise<boolean> {
    const kept = this.#links;
    if (kept.of !== undefined) return this.#other(kept.of).remove(field, key);
    this.#putLinks(links.remove(kept, field, key, this.clock()));
    return this.#tellKv();
  }

  override alarm(): Promise<void> {
    return this.#rows.ring();
  }

  #other(tag: string): Remote<JobMedia> {
    return jobMediaObject(this.env.JOB_MEDIA, tag, answersWithinMs.asked);
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

  /** Armed before it is tried: whatever becomes of this object, KV hears of it in the end. False where it did not yet. */
  async #tellKv(): Promise<boolean> {
    const now = this.clock();
    const { unwritten, undeleted } = links.owedOf(this.#links, now);
    if (unwritten.length + undeleted.length === 0) return true;
    const failingMs = now - this.#links.owedSince;
    this.#rows.wakeAt(now + Math.min(retryMs.max, Math.max(retryMs.min, failingMs)));
    const isOnlyOne = this.#writes === 0;
    try {
      const deleting = Promise.all(undeleted.map((key) => this.#delete(key, now)));
      await Promise.all([this.#write(unwritten, now), deleting]);
      // A write that is under way may land after a deletion, which is then owed once more.
      const isGone = await deleting;
      const deleted = undeleted.filter((_, at) => isOnlyOne && isGone[at]);
      this.#putLinks(links.paid(this.#links, { unwritten, undeleted: deleted }));
    } catch {
      console.warn(JSON.stringify({ binding: "IMAGES", problem: "links were not written or deleted, and will be" }));
      return false;
    }
    return unwritten.length === 0 || this.#tellKv();
  }

  async #write(unwritten: readonly links.Keyed[], now: number): Promise<void> {
    if (unwritten.length === 0) return;
    this.#writes++;
    try {
      await Promise.all(unwritten.map(({ key, media }) => this.#cache.put(key, media, now)));
    } finally {
      this.#writes--;
    }
  }

  /** What the link leads to goes last: until then its owner may ask for the same again. False where something may come back. */
  async #delete(key: string, now: number): Promise<boolean> {
    const isForgotten = await this.#forgetAnswer(key, now);
    await this.#cache.remove(key);
    return isForgotten;
  }

  /** In a scope of its owner's own the answer goes with the link. A shared one stays for the others, who have links of their own. */
  async #forgetAnswer(key: string, now: number): Promise<boolean> {
    const request = this.#sharing?.flight;
    if (request !== undefined && !isShared(request)) {
      const isGone = await sharedRequestObject(this.env.SHARED_REQUEST, request, answersWithinMs.asked).forget(key);
      if (isGone === undefined) throw new Error("KV refuses");
      return isGone;
    }
    const { kept, owedSince } = this.#links;
    const isOfOthers = kept.length === 0;
    if (request !== undefined || isOfOthers) await this.#cache.setLinkState(key, "removed", now);
    return !isOfOthers || !isRecent(owedSince, makingMs, now);
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
