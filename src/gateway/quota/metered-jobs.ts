// The jobs of a meter in SQL, and how many of them are open, kept so that nothing counts rows.
import { isFinal, type JobState } from "../../contract/states.ts";
import type { Kind } from "../../models/model.ts";
import { dueAt, expiresAt, firstDueAt } from "./job-timing.ts";
import type { MeteredJob } from "./metering.ts";
import { type Covers, payersAccount } from "./spending.ts";

export interface NewJob {
  admission: string;
  owner: string;
  account: string;
  model: string;
  kind: Kind | "";
  operation: string;
  reserved: number;
  admittedAt: number;
  ttlMs: number;
  retentionMs: number;
  webhook: string | null;
  idempotencyKey: string | null;
  /** The ids of the request counters that it counts in. */
  counters: string;
}

export interface JobRow extends NewJob, Record<string, SqlStorageValue> {
  ref: string | null;
  /** What the upstream last said of an open job. */
  seen: JobState | null;
  /** How it ended. */
  status: JobState | null;
  charged: number;
  assumed: number;
  expiresAt: number;
  dueAt: number;
  endedAt: number | null;
  /** When it was admitted, in the order of this meter's admissions. */
  turn: number;
}

/** What binding must know of a job. */
export type Bindable = NewJob & { readonly dueAt: number };

/** What a job is kept as that rides on another's: it takes no place of its own. */
export const joinedOperation = "joined";

/** Ended jobs that are kept: those whose cost is known, and those that a later truth may still correct. */
const keptEnded = { known: 1000, assumed: 3000 } as const;
/** Rows are removed so many at once, since one at a time would cost more. */
const pruneBatch = 50;

export class MeteredJobs {
  readonly #sql: SqlStorage;
  /** account → model. */
  readonly #open = new Map<string, Map<string, { kind: Kind | ""; count: number }>>();
  readonly #ended = { known: 0, assumed: 0 };
  /** No open job is due before; undefined where only SQL knows. */
  #notBefore: number | undefined;
  /** No open job expires before; undefined where only SQL knows. */
  #expiryNotBefore: number | undefined;
  /** The newest admission there ever was here: they sort by time. */
  #newest: string;
  /** Admitted by this object, and not bound yet. */
  readonly #unbound = new Map<string, Bindable>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    const open = `SELECT account, model, kind, operation, COUNT(*) AS count FROM jobs WHERE endedAt IS NULL
                  GROUP BY 1, 2, 3, 4`;
    for (const row of sql.exec<JobRow & { count: number }>(open)) this.#countOpen(row, row.count);
    const ended = "SELECT assumed, COUNT(*) AS count FROM jobs WHERE endedAt IS NOT NULL GROUP BY 1";
    for (const row of sql.exec<JobRow & { count: number }>(ended)) this.#countEnded(row.assumed, row.count);
    this.#newest = sql.exec<{ newest: string | null }>("SELECT MAX(admission) AS newest FROM jobs").one().newest ?? "";
  }

  openCount(account: string, covers: Covers): number {
    let count = 0;
    for (const [model, open] of this.#open.get(account) ?? []) {
      if (covers(model, open.kind || undefined)) count += open.count;
    }
    return count;
  }

  add(job: NewJob, turn: number): void {
    const due = firstDueAt(job);
    const expires = expiresAt(job, false);
    this.#sql.exec(
      `INSERT INTO jobs (admission, owner, account, model, kind, operation, reserved, admittedAt, ttlMs, retentionMs,
         expiresAt, dueAt, webhook, idempotencyKey, counters, turn)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[job.admission, job.owner, job.account, job.model, job.kind, job.operation, job.reserved, job.admittedAt],
      ...[job.ttlMs, job.retentionMs, expires, due, job.webhook, job.idempotencyKey],
      ...[job.counters, turn],
    );
    this.#countOpen(job, 1);
    this.#mayBeDue(due);
    if (this.#expiryNotBefore !== undefined) this.#expiryNotBefore = Math.min(this.#expiryNotBefore, expires);
    if (job.admission > this.#newest) this.#newest = job.admission;
    this.#unbound.set(job.admission, { ...job, dueAt: due });
  }

  has(admission: string): boolean {
    if (admission > this.#newest) return false;
    return this.#sql.exec("SELECT 1 FROM jobs WHERE admission = ?", admission).toArray().length > 0;
  }

  /** Most were admitted a moment ago. */
  toBind(admission: string): Bindable | undefined {
    return this.#unbound.get(admission) ?? this.find(admission);
  }

  find(admission: string): JobRow | undefined {
    return this.#sql.exec<JobRow>("SELECT * FROM jobs WHERE admission = ?", admission).toArray()[0];
  }

  /** Of one upstream job's admissions the one that an ending is for: the newest open one, else one that was assumed. */
  findByRef(owner: string, ref: string): JobRow | undefined {
    return this.#sql
      .exec<JobRow>(
        `SELECT * FROM jobs WHERE ref = ? AND owner = ? AND operation <> '${joinedOperation}'
           AND (endedAt IS NULL OR assumed = 1)
         ORDER BY endedAt IS NOT NULL, admission DESC LIMIT 1`,
        ...[ref, owner],
      )
      .toArray()[0];
  }

  /** The first question's time is mostly there already: an index that need not be written is half of the cost. */
  bind(job: Bindable, ref: string, now: number): void {
    this.#unbound.delete(job.admission);
    const expires = expiresAt(job, true);
    const due = dueAt(job, true, now);
    if (due >= job.dueAt) {
      this.#sql.exec("UPDATE jobs SET ref = ?, expiresAt = ? WHERE admission = ?", ref, expires, job.admission);
      return;
    }
    const change = "UPDATE jobs SET ref = ?, expiresAt = ?, dueAt = ? WHERE admission = ?";
    this.#sql.exec(change, ref, expires, due, job.admission);
    this.#mayBeDue(due);
  }

  /** Asked about, or not bound yet: the next moment comes in its time, whatever the answer. */
  postpone(job: JobRow, now: number): void {
    this.#unbound.delete(job.admission);
    const next = Math.max(now + 1, dueAt(job, job.ref !== null, now));
    this.#sql.exec("UPDATE jobs SET dueAt = ? WHERE admission = ?", next, job.admission);
    this.#mayBeDue(next);
  }

  see(job: JobRow, status: JobState): void {
    if (job.seen !== status) this.#sql.exec("UPDATE jobs SET seen = ? WHERE admission = ?", status, job.admission);
  }

  end(job: JobRow, end: { status: JobState; charged: number; assumed: boolean; endedAt: number }): void {
    const assumed = end.assumed ? 1 : 0;
    this.#sql.exec(
      "UPDATE jobs SET status = ?, charged = ?, assumed = ?, endedAt = ? WHERE admission = ?",
      ...[end.status, end.charged, assumed, end.endedAt, job.admission],
    );
    this.#unbound.delete(job.admission);
    if (job.endedAt === null) this.#countOpen(job, -1);
    else this.#countEnded(job.assumed, -1);
    this.#countEnded(assumed, 1);
    this.#prune(assumed);
  }

  /** A client's webhook that came late: a job that has ended meanwhile is not told of. */
  owe(admission: string, webhook: string): void {
    this.#sql.exec("UPDATE jobs SET webhook = ? WHERE admission = ? AND endedAt IS NULL", webhook, admission);
  }

  /** The notice is written: no other will be. */
  noticed(admission: string): void {
    this.#sql.exec("UPDATE jobs SET webhook = NULL WHERE admission = ?", admission);
  }

  remove(job: JobRow): void {
    this.#sql.exec("DELETE FROM jobs WHERE admission = ?", job.admission);
    this.#unbound.delete(job.admission);
    if (job.endedAt === null) this.#countOpen(job, -1);
    else this.#countEnded(job.assumed, -1);
  }

  due(now: number, count: number): JobRow[] {
    if (now < (this.nextDue() ?? Number.POSITIVE_INFINITY)) return [];
    this.#notBefore = undefined;
    const query = "SELECT * FROM jobs WHERE endedAt IS NULL AND dueAt <= ? ORDER BY dueAt LIMIT ?";
    return this.#sql.exec<JobRow>(query, now, count).toArray();
  }

  /** A look at all open jobs, and so a rare one: what binds a job only puts its expiry off. */
  expired(now: number, count: number): JobRow[] {
    const open = "FROM jobs WHERE endedAt IS NULL";
    const first = `SELECT MIN(expiresAt) AS at ${open}`;
    this.#expiryNotBefore ??= this.#sql.exec<{ at: number | null }>(first).one().at ?? Number.POSITIVE_INFINITY;
    if (now < this.#expiryNotBefore) return [];
    const query = `SELECT * ${open} AND expiresAt <= ? LIMIT ?`;
    const rows = this.#sql.exec<JobRow>(query, now, count).toArray();
    if (rows.length < count) this.#expiryNotBefore = undefined;
    return rows;
  }

  /** Or earlier: an alarm that rings for a job that has ended meanwhile asks SQL. */
  nextDue(): number | undefined {
    const query = "SELECT MIN(dueAt) AS at FROM jobs WHERE endedAt IS NULL";
    this.#notBefore ??= this.#sql.exec<{ at: number | null }>(query).one().at ?? Number.POSITIVE_INFINITY;
    return Number.isFinite(this.#notBefore) ? this.#notBefore : undefined;
  }

  #mayBeDue(at: number): void {
    if (this.#notBefore !== undefined) this.#notBefore = Math.min(this.#notBefore, at);
  }

  /** Oldest first. */
  open(owner: string, model: string, count: number): MeteredJob[] {
    const query =
      "SELECT * FROM jobs WHERE endedAt IS NULL AND owner = ? AND model = ? ORDER BY admittedAt, admission LIMIT ?";
    return this.#sql.exec<JobRow>(query, owner, model, count).toArray().map(describeJob);
  }

  /** Newest first. */
  page(owner: string, model: string | undefined, offset: number, count: number): { jobs: MeteredJob[]; total: number } {
    const where = "FROM jobs WHERE owner = ?1 AND (?2 IS NULL OR model = ?2)";
    const { total } = this.#sql
      .exec<{ total: number }>(`SELECT COUNT(*) AS total ${where}`, owner, model ?? null)
      .one();
    const query = `SELECT * ${where} ORDER BY admission DESC LIMIT ?3 OFFSET ?4`;
    const rows = this.#sql.exec<JobRow>(query, owner, model ?? null, count, offset).toArray();
    return { jobs: rows.map(describeJob), total };
  }

  #prune(assumed: number): void {
    const kind = assumed ? "assumed" : "known";
    if (this.#ended[kind] < keptEnded[kind] + pruneBatch) return;
    this.#sql.exec(
      `DELETE FROM jobs WHERE admission IN (
         SELECT admission FROM jobs WHERE endedAt IS NOT NULL AND assumed = ? ORDER BY endedAt LIMIT ?)`,
      ...[assumed, pruneBatch],
    );
    this.#ended[kind] -= pruneBatch;
  }

  /** A token's job is one of its payer's too. */
  #countOpen(job: Pick<NewJob, "account" | "model" | "kind" | "operation">, by: number): void {
    if (job.operation === joinedOperation) return;
    this.#countOpenOf(payersAccount, job, by);
    if (job.account !== payersAccount) this.#countOpenOf(job.account, job, by);
  }

  #countOpenOf(account: string, { model, kind }: Pick<NewJob, "model" | "kind">, by: number): void {
    const models = this.#open.get(account) ?? new Map<string, { kind: Kind | ""; count: number }>();
    const count = (models.get(model)?.count ?? 0) + by;
    if (count > 0) models.set(model, { kind, count });
    else models.delete(model);
    if (models.size > 0) this.#open.set(account, models);
    else this.#open.delete(account);
  }

  #countEnded(assumed: number, by: number): void {
    this.#ended[assumed ? "assumed" : "known"] += by;
  }
}

export function describeJob(job: JobRow): MeteredJob {
  return {
    admission: job.admission,
    owner: job.owner,
    upstreamId: job.ref,
    model: job.model,
    status: job.status ?? openStatus(job.seen),
    reservedMicroUsd: job.reserved,
    costMicroUsd: job.endedAt === null ? null : job.charged,
    isAssumed: job.assumed === 1,
    admittedAt: job.admittedAt,
    endedAt: job.endedAt,
  };
}

function openStatus(seen: JobState | null): JobState {
  return seen === null || isFinal(seen) ? "IN_QUEUE" : seen;
}
