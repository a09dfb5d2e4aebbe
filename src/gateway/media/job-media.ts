// JOB_MEDIA: one object per job and owner, named by the job's tag. It keeps the links that the job ended with, and who
// shares it.
import * as z from "zod";
import type { MediaField } from "../../contract/media-fields.ts";
import { isFinal } from "../../contract/states.ts";
import { CheckedObject } from "../../durable/checked-object.ts";
import { answersWithinMs, type Remote, remote } from "../../durable/remote.ts";
import { nameOfFault } from "../../errors.ts";
import { isRecent } from "../../isolate/recent.ts";
import { ExpiringRows } from "./expiring-rows.ts";
import { ImageCache, isShared } from "./image-cache.ts";
import * as links from "./kept-links.ts";
import type { Media } from "./media.ts";
import { sharedRequestObject } from "./shared-request.ts";

/** The pause before a failed write of KV is tried again: as long as it has been failing, within these bounds. */
const retryMs = { min: 10_000, max: 60 * 60_000 };

/** An isolate may make a link to another owner's answer without telling this object. It takes no longer than this. */
const makingMs = 30_000;

/** The rows' names. */
const row = {
  links: "links",
  own: "own",
  sharing: "sharing",
  rider: (admission: string) => `rider/${admission}`,
};

export interface JobOutcome {
  readonly admission: string;
  readonly ref: string;
  readonly status: string;
  readonly media: readonly links.MediaEntry[];
}

export interface KeptMedia {
  readonly kept: readonly links.MediaEntry[];
  readonly rider: links.ShareRole | null;
}

export interface Registration {
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

export class JobMedia extends CheckedObject {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  readonly #cache: ImageCache;
  readonly #rows: ExpiringRows;
  /** A job that ended before anybody said that it is shared. */
  #endedAs: JobOutcome | undefined;
  /** Writes of KV that are under way. */
  #writes = 0;
  #isArmed = false;

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

  /** Called by the request that submitted or joined the job, before or after the job's end. */
  expect({ admission, rider, flight, ref: upstreamId }: Registration): void {
    this.#put(row.rider(admission), rider);
    if (!this.#sharing) this.#put(row.sharing, { flight, ref: upstreamId } satisfies links.Sharing);
    if (this.#endedAs) this.#tellOthers(this.#endedAs);
  }

  /** The output lies in the caller's own bucket: its links are left as they are. */
  leaveAlone(): void {
    this.#put(row.own, true);
  }

  /** Keeps the media of the job's end. The first call counts; a later one gets what the first one kept. */
  conclude(outcome: JobOutcome): KeptMedia {
    if (this.#rows.get(row.own, z.literal(true))) return { kept: [], rider: null };
    const before = this.#links;
    const after = links.keep(before, outcome.media, this.clock());
    if (after !== before) {
      this.#putLinks(after);
      this.ctx.waitUntil(this.#tellKv());
    }
    this.#endedAs = outcome;
    if (isFinal(outcome.status)) this.#tellOthers(outcome);
    return { kept: after.kept, rider: this.riderOf(outcome.admission) ?? null };
  }

  find(field: MediaField): Media | undefined {
    return links.find(this.#links, field);
  }

  /** How the admission came to the job, and which request it is of; undefined for a job that no other request may join. */
  sharing(admission: string): { flight: string; rider: links.ShareRole } | undefined {
    const rider = this.riderOf(admission);
    return this.#sharing && rider && { flight: this.#sharing.flight, rider };
  }

  riderOf(admission: string): links.ShareRole | undefined {
    return this.#rows.get(row.rider(admission), links.shareRoleSchema);
  }

  detach(admission: string): links.ShareRole | undefined {
    const rider = this.riderOf(admission);
    if (rider) this.#put(row.rider(admission), "detached");
    return rider;
  }

  /** The link, and the answer to the same request with it. False where KV did not take it: the alarm asks again. */
  async remove(field: MediaField, key: string): Promise<boolean> {
    this.#putLinks(links.remove(this.#links, field, key, this.clock()));
    return this.#tellKv();
  }

  override alarm(): Promise<void> {
    return this.#rows.ring();
  }

  get #links(): links.KeptLinks {
    return this.#rows.get(row.links, links.linksSchema) ?? links.noLinks;
  }

  get #sharing(): links.Sharing | undefined {
    return this.#rows.get(row.sharing, links.sharingSchema);
  }

  #put(name: string, value: unknown): void {
    this.#rows.put(name, value, links.keptUntil(this.clock()));
    this.#rearm();
  }

  #putLinks(kept: links.KeptLinks): void {
    this.#rows.put(row.links, kept, links.keptUntil(this.clock(), kept.kept));
    this.#rearm();
  }

  /**
   * A woken object does not know when its alarm rings. If KV still has to be told something, the alarm must not be
   * moved to a later time than that.
   */
  #rearm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    const now = this.clock();
    const { unwritten, undeleted } = links.owedOf(this.#links, now);
    if (unwritten.length + undeleted.length > 0) this.#rows.wakeAt(this.#retryAt(now));
  }

  #retryAt(now: number): number {
    const failingMs = now - this.#links.owedSince;
    return now + Math.min(retryMs.max, Math.max(retryMs.min, failingMs));
  }

  /** Armed before it is tried: whatever becomes of this object, KV hears of it in the end. False where it did not yet. */
  async #tellKv(): Promise<boolean> {
    const now = this.clock();
    const { unwritten, undeleted } = links.owedOf(this.#links, now);
    if (unwritten.length + undeleted.length === 0) return true;
    this.#rows.wakeAt(this.#retryAt(now));
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

  async #write(unwritten: readonly links.MediaEntry[], now: number): Promise<void> {
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

  /** Tells the flight of the job's end, once for each end: a retry gives the job another one. */
  #tellOthers({ ref: upstreamId, status }: JobOutcome): void {
    const sharing = this.#sharing;
    if (!sharing || sharing.told === status) return;
    this.ctx.waitUntil(this.#land(sharing, upstreamId, status));
  }

  /** If the flight cannot be told now, the next request that sees the job's end tells it. */
  async #land(sharing: links.Sharing, upstreamId: string, status: string): Promise<void> {
    try {
      const request = sharedRequestObject(this.env.SHARED_REQUEST, sharing.flight, answersWithinMs.asked);
      await request.land(upstreamId, links.reusableOf(this.#links, status));
      this.#put(row.sharing, { ...sharing, told: status });
    } catch (error) {
      console.warn(JSON.stringify({ flight: "not told of its end", error: nameOfFault(error) }));
    }
  }
}
