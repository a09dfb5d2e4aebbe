// What is learned of an admission between its start and its end: the upstream's id, a doubt, text that was handed out.
import { Chain } from "./chain.ts";
import { handedOutPrice } from "./charge.ts";
import type { Job } from "./job.ts";
import { dueAt, expiresAt } from "./job-timing.ts";
import type { MeterStores } from "./meter-stores.ts";
import type { Binding, HandedOut } from "./metering.ts";

export class Bindings {
  readonly #stores: MeterStores;
  readonly #chain: Chain;

  constructor(stores: MeterStores) {
    this.#stores = stores;
    this.#chain = new Chain(stores);
  }

  /** The first word counts. A retry is of the job that it was admitted for, and of no other. */
  bind({ admission, upstreamId }: Binding, now: number): void {
    const job = this.#stores.jobs.find(admission);
    if (!job || job.boundAt !== null || (job.upstreamId ?? upstreamId) !== upstreamId) return;
    const isAlone = job.idempotencyKey === null && job.retryOf === null;
    if (isAlone) this.#stores.single(() => this.#bind(job, upstreamId, now));
    else this.#stores.transaction(() => this.#bind(job, upstreamId, now));
  }

  #bind(job: Job, upstreamId: string, now: number): void {
    const bound = { ...job, boundAt: now, doubtedAt: null };
    const due = Math.min(dueAt(bound, now), job.doubtedAt === null && job.dueAt > now ? job.dueAt : Infinity);
    const change = { upstreamId, boundAt: now, expiresAt: expiresAt(bound) };
    /** The first question's time is mostly there already. */
    const isDueAnew = due !== job.dueAt || job.doubtedAt !== null;
    this.#stores.jobs.update(job, isDueAnew ? { ...change, dueAt: due, doubtedAt: null } : change);
    const { owner, idempotencyKey, admission } = job;
    if (idempotencyKey !== null) this.#stores.idempotency.bind(owner, idempotencyKey, admission, upstreamId);
    if (job.retryOf !== null) this.#chain.accept(job, now);
  }

  /** Within a transaction that is under way. */
  bindWithin(job: Job, upstreamId: string, now: number): void {
    if (job.boundAt === null && (job.upstreamId ?? upstreamId) === upstreamId) this.#bind(job, upstreamId, now);
  }

  /** A notice told of the job, and the upstream does not say its end yet: the alarm asks soon. */
  lookAgain(binding: Binding, now: number): void {
    this.bind(binding, now);
    const named = this.#stores.jobs.find(binding.admission);
    const job = named && this.#chain.newestOf(named);
    if (!job || job.endedAt !== null || job.boundAt === null) return;
    const told = { ...job, noticeAt: now };
    this.#stores.single(() => this.#stores.jobs.update(job, { noticeAt: now, dueAt: dueAt(told, now) }));
  }

  /** Its place is free at once, its money when it expires. */
  doubt(admission: string, now: number): void {
    const job = this.#stores.jobs.findOpen(admission);
    if (!job || job.boundAt !== null || job.doubtedAt !== null) return;
    const expiry = expiresAt({ ...job, doubtedAt: now });
    const change = { place: 0, doubtedAt: now, expiresAt: expiry, dueAt: expiry } as const;
    this.#stores.single(() => this.#stores.change(job, () => this.#stores.jobs.update(job, change)));
  }

  /** Told late, it raises what was assumed at the job's end. */
  handOut(admission: string, { upstreamId, pieces, textBytes, whole }: HandedOut, now: number): void {
    const named = this.#stores.jobs.find(admission);
    const job = named && this.#chain.newestOf(named);
    if (!job || job.operation === "joined") return;
    if (job.upstreamId !== null && upstreamId !== null && job.upstreamId !== upstreamId) return;
    const handed = whole
      ? { pieces: Math.max(job.pieces, pieces), textBytes: Math.max(job.textBytes, textBytes) }
      : { pieces: job.pieces + pieces, textBytes: job.textBytes + textBytes };
    if (handed.pieces === job.pieces && handed.textBytes === job.textBytes) return;
    if (job.endedAt === null) this.#stores.single(() => this.#stores.jobs.update(job, handed));
    else if (job.assumed === 1 && job.status !== "COMPLETED") {
      this.#stores.transaction(() => this.#raise(job, handed, now));
    }
  }

  #raise(job: Job, handed: Pick<Job, "pieces" | "textBytes">, now: number): void {
    this.#stores.jobs.update(job, handed);
    const { status, endedAt, charged } = job;
    if (status === null || endedAt === null) return;
    const price = Math.max(charged, handedOutPrice(job));
    this.#stores.end(job, { status, charged: price, assumed: 1, endedAt }, now);
  }
}
