// The jobs of a meter: open ones in memory and as rows of `jobs`, ended ones as rows of `ended`, the newest few thousand.
// A job that ends may stay in `jobs` until the next transaction: its end is then one statement.
import type { JobState } from "../../contract/states.ts";
import { requireAmounts } from "./amounts.ts";
import { describeJob, type Job, notEnded } from "./job.ts";
import {
  type EndedRow,
  endedValues,
  insertOpen,
  type OpenRow,
  openValues,
  readEnded,
  readOpen,
  updateOpen,
  writeEnded,
} from "./job-rows.ts";
import { expiresAt } from "./job-timing.ts";
import type { MeteredJob } from "./metering.ts";
import type { Tables } from "./tables.ts";

export interface End {
  readonly status: JobState;
  readonly charged: number;
  readonly assumed: 0 | 1;
  readonly endedAt: number;
}

/** Ended jobs that are kept: those whose cost is known, and those that a later truth may still correct. */
const keptEnded = { known: 1000, assumed: 3000 };
export type EndedCounts = typeof keptEnded;
/** Rows are removed so many at once, since one at a time would cost more. */
const pruneBatch = 50;
/** In SQL: the meter still asks the upstream about it, for its webhook's body or for its owner, who has not seen its end. */
const owedKinds = "debts.kind IN ('webhook', 'untold')";
const isOwed = `EXISTS (SELECT 1 FROM debts WHERE debts.admission = ended.admission AND ${owedKinds})`;
const deleteOpen = "DELETE FROM jobs WHERE turn = ?";

export class Jobs {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  readonly #open = new Map<string, Job>();
  /** Ended, and still in `jobs`. */
  readonly #unmoved = new Map<string, Job>();
  readonly #ended: EndedCounts;
  /**
   * How many rows the last pruning had to leave, since nearly all were owed. They are looked at again once there is a batch
   * more of them. 0 where it found enough to remove.
   */
  readonly #unprunable: EndedCounts = { known: 0, assumed: 0 };
  /** No open job is due or expires before this moment. Undefined if all must be looked at. */
  #dueNotBefore: number | undefined;
  #expiryNotBefore: number | undefined;

  constructor(sql: SqlStorage, tables: Tables, ended: EndedCounts = { known: 0, assumed: 0 }) {
    this.#sql = sql;
    this.#tables = tables;
    this.#ended = { ...ended };
    if (!tables.isBorn) return;
    for (const row of sql.exec<OpenRow>("SELECT * FROM jobs")) {
      const job = readOpen(row);
      (job.endedAt === null ? this.#open : this.#unmoved).set(job.admission, job);
    }
  }

  get endedCounts(): EndedCounts {
    return { ...this.#ended };
  }

  open(): IterableIterator<Job> {
    return this.#open.values();
  }

  get openCount(): number {
    return this.#open.size;
  }

  unmoved(): IterableIterator<Job> {
    return this.#unmoved.values();
  }

  get unmovedCount(): number {
    return this.#unmoved.size;
  }

  find(admission: string): Job | undefined {
    return this.#open.get(admission) ?? this.#unmoved.get(admission) ?? this.#findEnded(admission);
  }

  #findEnded(admission: string): Job | undefined {
    if (!this.#tables.has("ended")) return undefined;
    const row = this.#sql.exec<EndedRow>("SELECT * FROM ended WHERE admission = ?", admission).toArray()[0];
    return row && readEnded(row);
  }

  findOpen(admission: string): Job | undefined {
    return this.#open.get(admission);
  }

  /** A later retry that was never reported as accepted: it is still open, or was assumed to be lost. */
  findUnboundRetryOf(admission: string, afterTurn: number): Job | undefined {
    const isUnbound = (job: Job) => job.retryOf === admission && job.boundAt === null && job.turn > afterTurn;
    for (const job of this.#open.values()) {
      if (isUnbound(job)) return job;
    }
    return this.#assumedWith(admission).find(isUnbound);
  }

  /**
   * Rows that name the admission anywhere, newest first. Every row is looked at: it is asked seldom. A retry's end is
   * moved at once.
   */
  #assumedWith(admission: string): Job[] {
    if (!this.#tables.has("ended")) return [];
    const query = "SELECT * FROM ended WHERE assumed = 1 AND instr(rest, ?) > 0 ORDER BY turn DESC";
    return this.#sql.exec<EndedRow>(query, admission).toArray().map(readEnded);
  }

  /** One row, in one statement. */
  add(job: Job): void {
    this.#tables.bear();
    this.#sql.exec(insertOpen, ...openValues(job));
    this.#open.set(job.admission, job);
    this.#mayBeDue(job);
  }

  /** Of what counts nowhere, or was taken back from the counters before. */
  update(job: Job, change: Partial<Job>): void {
    const changed = { ...job, ...change };
    if (job.endedAt === null) this.#sql.exec(updateOpen, ...openValues(changed));
    else this.#sql.exec(writeEnded, ...endedValues(changed));
    Object.assign(job, change);
    if (job.endedAt === null) this.#mayBeDue(job);
  }

  end(job: Job, end: End): void {
    Object.assign(job, end);
    this.#open.delete(job.admission);
    this.#moveEnded(job);
  }

  /** One statement. The row is moved with the next transaction, whose table would refuse what is no amount or moment. */
  endInPlace(job: Job, end: End): void {
    requireAmounts(end.charged, end.endedAt);
    this.#sql.exec(updateOpen, ...openValues({ ...job, ...end }));
    Object.assign(job, end);
    this.#open.delete(job.admission);
    this.#unmoved.set(job.admission, job);
  }

  /** One after the other: each is given when its row is moved. */
  *moveEnded(): Generator<Job> {
    for (const job of this.#unmoved.values()) {
      this.#unmoved.delete(job.admission);
      this.#moveEnded(job);
      yield job;
    }
  }

  #moveEnded(job: Job): void {
    this.#tables.need("ended");
    this.#sql.exec(deleteOpen, job.turn);
    this.#sql.exec(writeEnded, ...endedValues(job));
    this.#countEnded(job, 1);
  }

  /** The truth about an end that was assumed. */
  correct(job: Job, end: End): void {
    this.#countEnded(job, -1);
    this.update(job, { ...end });
    this.#countEnded(job, 1);
  }

  remove(job: Job): void {
    if (job.endedAt === null) {
      this.#open.delete(job.admission);
      this.#sql.exec(deleteOpen, job.turn);
    } else {
      this.#countEnded(job, -1);
      this.#sql.exec("DELETE FROM ended WHERE admission = ?", job.admission);
    }
  }

  revive(job: Job): void {
    this.remove(job);
    this.add(Object.assign(job, notEnded));
  }

  #countEnded({ assumed }: Job, by: 1 | -1): void {
    this.#ended[assumed ? "assumed" : "known"] += by;
  }

  /** Of a kind that has too many rows, those that ended first; gone. One that is owed stays. */
  prune(): Job[] {
    return [...this.#pruneKind("known"), ...this.#pruneKind("assumed")];
  }

  #pruneKind(kind: keyof EndedCounts): Job[] {
    if (this.#ended[kind] < Math.max(keptEnded[kind], this.#unprunable[kind]) + pruneBatch) return [];
    const areOthers = this.#tables.has("debts") ? `AND NOT ${isOwed}` : "";
    const oldest = `SELECT admission FROM ended WHERE assumed = ? ${areOthers} ORDER BY endedAt, admission LIMIT ?`;
    const query = `DELETE FROM ended WHERE admission IN (${oldest}) RETURNING *`;
    const rows = this.#sql.exec<EndedRow>(query, kind === "assumed" ? 1 : 0, pruneBatch).toArray();
    const gone = rows.map(readEnded);
    for (const job of gone) this.#countEnded(job, -1);
    this.#unprunable[kind] = gone.length < pruneBatch ? this.#ended[kind] : 0;
    return gone;
  }

  #mayBeDue({ dueAt, expiresAt }: Job): void {
    if (this.#dueNotBefore !== undefined) this.#dueNotBefore = Math.min(this.#dueNotBefore, dueAt);
    if (this.#expiryNotBefore !== undefined) this.#expiryNotBefore = Math.min(this.#expiryNotBefore, expiresAt);
  }

  /** The clock was set back: what was begun ahead of it does not last for longer. */
  hurry(now: number): void {
    for (const job of this.#open.values()) {
      /** One that outlived its time is asked about once more. */
      const expiry = Math.min(job.expiresAt, Math.max(expiresAt(job, now), now));
      if (job.dueAt > now) this.update(job, { dueAt: now, expiresAt: expiry });
    }
  }

  /** First due first. A look at all of them, and so for the alarm alone. */
  due(now: number): Job[] {
    this.#dueNotBefore = undefined;
    return [...this.#open.values()].filter(({ dueAt }) => dueAt <= now).sort((one, other) => one.dueAt - other.dueAt);
  }

  /** Or earlier, where what was due has ended meanwhile. */
  nextDue(): number | undefined {
    this.#dueNotBefore ??= leastOf(this.#open.values(), ({ dueAt }) => dueAt);
    return Number.isFinite(this.#dueNotBefore) ? this.#dueNotBefore : undefined;
  }

  expired(now: number): Job[] {
    this.#expiryNotBefore ??= leastOf(this.#open.values(), ({ expiresAt }) => expiresAt);
    if (now < this.#expiryNotBefore) return [];
    this.#expiryNotBefore = undefined;
    return [...this.#open.values()].filter(({ expiresAt }) => expiresAt <= now);
  }

  /** Newest first, as they have the longest wait before them; those that were seen running come last. */
  openOf(owner: string, model: string, count: number): MeteredJob[] {
    const own = [...this.#open.values()].filter((job) => job.owner === owner && job.model === model);
    return own
      .sort((one, other) => isRunning(one) - isRunning(other) || other.turn - one.turn)
      .slice(0, count)
      .map(describeJob);
  }

  /** Newest first. */
  page(owner: string, model: string | undefined, offset: number, count: number): { jobs: MeteredJob[]; total: number } {
    const isAsked = (job: Job) => job.owner === owner && (model === undefined || job.model === model);
    const inMemory = [...this.#open.values(), ...this.#unmoved.values()].filter(isAsked);
    const ended = this.#endedOf(owner, model, offset + count);
    const newest = [...inMemory, ...ended.jobs].sort((one, other) => (one.admission < other.admission ? 1 : -1));
    return { jobs: newest.slice(offset, offset + count).map(describeJob), total: inMemory.length + ended.total };
  }

  #endedOf(owner: string, model: string | undefined, count: number): { jobs: Job[]; total: number } {
    if (!this.#tables.has("ended")) return { jobs: [], total: 0 };
    const where = "FROM ended WHERE owner = ?1 AND (?2 IS NULL OR model = ?2)";
    const totals = this.#sql.exec<{ total: number }>(`SELECT COUNT(*) AS total ${where}`, owner, model ?? null);
    const { total } = totals.one();
    const query = `SELECT * ${where} ORDER BY admission DESC LIMIT ?3`;
    return {
      jobs: this.#sql
        .exec<EndedRow>(query, owner, model ?? null, count)
        .toArray()
        .map(readEnded),
      total,
    };
  }

  /** Every row there is, for who counts anew. */
  *all(): Generator<Job> {
    yield* this.#open.values();
    yield* this.#unmoved.values();
    if (!this.#tables.has("ended")) return;
    for (const row of this.#sql.exec<EndedRow>("SELECT * FROM ended")) yield readEnded(row);
  }
}

function isRunning({ seen }: Job): number {
  return Number(seen === "IN_PROGRESS");
}

function leastOf(jobs: Iterable<Job>, moment: (job: Job) => number): number {
  let least = Number.POSITIVE_INFINITY;
  for (const job of jobs) least = Math.min(least, moment(job));
  return least;
}
