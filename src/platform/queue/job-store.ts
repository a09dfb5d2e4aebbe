// The jobs of one endpoint in SQL: every move keeps the totals, the timers and the outbox in step, in one transaction.
import { isFinal, type JobState } from "../../contract/states.ts";
import { Chunks } from "./chunks.ts";
import type { EndpointSettings } from "./endpoint-settings.ts";
import { Executed } from "./executed.ts";
import { countsOf, describeJob, effectsOf, type JobEvent, type JobRow, moves, nextTimer } from "./job.ts";
import { NoticeOutbox } from "./notice-outbox.ts";
import { Payloads } from "./payloads.ts";
import type { Payload } from "./queue-calls.ts";
import { type Sums, Totals } from "./totals.ts";

export interface NewJob {
  readonly id: string;
  readonly lowPriority: boolean;
  readonly ttlMs: number;
  readonly executionTimeoutMs: number | null;
  readonly retentionMs: number;
  readonly webhook: string | null;
  readonly origin: string;
  readonly input: { readonly key: number; readonly size: number; readonly from: number; readonly to: number };
}

export type Change = Partial<Pick<JobRow, "worker" | "error" | "output" | "ttlMs">>;
export type Moved = { job: JobRow; deleted: boolean };

const statesWithoutRetry: ReadonlySet<string> = new Set(["COMPLETED", "CANCELLED"]);

export class JobStore {
  readonly payloads: Payloads;
  readonly outbox: NoticeOutbox;
  readonly chunks: Chunks;
  readonly executed: Executed;
  readonly #sql: SqlStorage;
  /** The endpoint's settings, as they are now. */
  readonly #settings: () => EndpointSettings;
  readonly #totals: Totals;

  constructor(storage: DurableObjectStorage, settings: () => EndpointSettings) {
    this.#sql = storage.sql;
    this.#settings = settings;
    this.payloads = new Payloads(storage.sql);
    this.outbox = new NoticeOutbox(storage.sql);
    this.chunks = new Chunks(storage.sql);
    this.executed = new Executed(storage.sql, () => settings().managed?.meter);
    this.#totals = new Totals(storage);
  }

  /** What lay in storage is gone, and with it what memory knew of it. */
  forget(): void {
    this.#totals.forget();
  }

  get totals(): Readonly<Sums> {
    return this.#totals.sums;
  }

  transaction<T>(work: () => T): T {
    return this.#totals.transaction(work);
  }

  newPayloadKey(): number {
    this.#totals.add({ payload: 1 });
    return this.totals.payload;
  }

  /** Undefined where the upload that it speaks of is gone. */
  keep(body: Payload): { key: number; size: number } | undefined {
    if (!(body instanceof Uint8Array))
      return this.payloads.adopt(body.upload) ? { key: body.upload, size: body.size } : undefined;
    const key = this.newPayloadKey();
    this.payloads.put(key, body);
    return { key, size: body.byteLength };
  }

  add(job: NewJob, now: number): void {
    this.#totals.add({ position: 1, jobs: 1, waiting: 1, waitingLow: job.lowPriority ? 1 : 0, bytes: job.input.size });
    this.#sql.exec(
      `INSERT INTO jobs (id, status, position, lowPriority, submittedAt, queuedAt, ttlMs, executionTimeoutMs,
         retentionMs, webhook, origin, input, inputFrom, inputTo, dueAt)
       VALUES (?, 'IN_QUEUE', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      job.id,
      this.totals.position,
      job.lowPriority ? 1 : 0,
      now,
      now,
      job.ttlMs,
      job.executionTimeoutMs,
      job.retentionMs,
      job.webhook,
      job.origin,
      job.input.key,
      job.input.from,
      job.input.to,
      now + job.ttlMs,
    );
  }

  find(id: string): JobRow | undefined {
    return this.#sql.exec<JobRow>("SELECT * FROM jobs WHERE id = ?", id).toArray()[0];
  }

  firstWaiting(count: number): JobRow[] {
    const query = "SELECT * FROM jobs WHERE status = 'IN_QUEUE' ORDER BY position LIMIT ?";
    return this.#sql.exec<JobRow>(query, count).toArray();
  }

  heldBy(worker: string): JobRow[] {
    const query = "SELECT * FROM jobs WHERE status = 'IN_PROGRESS' AND worker = ? ORDER BY key";
    return this.#sql.exec<JobRow>(query, worker).toArray();
  }

  /** Notes until when the worker must be heard of, or that it was. */
  setLostAt(worker: string, lostAt: number | null): void {
    this.#sql.exec("UPDATE jobs SET lostAt = ? WHERE status = 'IN_PROGRESS' AND worker = ?", lostAt, worker);
  }

  busyWorkers(): string[] {
    const query = "SELECT DISTINCT worker FROM jobs WHERE status = 'IN_PROGRESS'";
    return this.#sql
      .exec<{ worker: string }>(query)
      .toArray()
      .map(({ worker }) => worker);
  }

  due(now: number, count: number): JobRow[] {
    return this.#sql.exec<JobRow>("SELECT * FROM jobs WHERE dueAt <= ? ORDER BY dueAt LIMIT ?", now, count).toArray();
  }

  nextDue(): number | undefined {
    const jobs = this.#sql.exec<{ at: number | null }>("SELECT MIN(dueAt) AS at FROM jobs").one().at;
    const times = [jobs ?? undefined, this.payloads.nextUploadDue(), this.executed.nextDue()];
    const known = times.filter((time) => time !== undefined);
    return known.length > 0 ? Math.min(...known) : undefined;
  }

  /** Newest first. */
  page(offset: number, count: number): JobRow[] {
    return this.#sql.exec<JobRow>("SELECT * FROM jobs ORDER BY key DESC LIMIT ? OFFSET ?", count, offset).toArray();
  }

  /** The one way that a job changes its state. Undefined where the table has no such move. */
  move(job: JobRow, event: JobEvent, now: number, change: Change = {}): Moved | undefined {
    const status = moves[job.status][event];
    if (status === undefined) return undefined;
    this.#totals.count(job, -1);
    if (job.status === "IN_PROGRESS") this.executed.add(event, job.worker, job.takenAt, now);
    if (status === "deleted") {
      this.#delete(job);
      return { job, deleted: true };
    }
    if (statesWithoutRetry.has(status)) this.#keepInputAlone(job);
    const next: JobRow = { ...job, ...effectsOf(event, now), ...change, status };
    if (event === "retried") {
      this.#totals.add({ position: 1 });
      next.position = this.totals.position;
    }
    if (event === "lost") next.retries += 1;
    if (status === "IN_QUEUE") {
      this.#dropOutput(job);
      next.output = null;
      this.#dropChunks(job);
    }
    next.dueAt = nextTimer(next, this.#settings().executionTimeoutMs).at;
    this.#write(next, job.status);
    this.#totals.count(next, 1);
    this.#totals.add(countsOf(event));
    if (isFinal(status) && next.webhook !== null) {
      this.outbox.add({ ...next, webhook: next.webhook }, JSON.stringify(describeJob(next, now)), now);
    }
    return { job: next, deleted: false };
  }

  /** A change that is no move: a ttl set anew, a report of progress. */
  update(job: JobRow, change: Change): JobRow {
    const next = { ...job, ...change };
    next.dueAt = nextTimer(next, this.#settings().executionTimeoutMs).at;
    this.#write(next, job.status);
    return next;
  }

  /** Replaces the job's output, or its report of progress, by what lies under the key. */
  replaceOutput(job: JobRow, key: number | null, size: number): JobRow {
    this.#dropOutput(job);
    if (key !== null) this.#totals.add({ bytes: size });
    return this.update(job, { output: key });
  }

  /** Removes a job's payload once neither the job nor a notice needs it; false until then. */
  release(job: number, payload: number | null): boolean {
    if (payload === null) return true;
    if (this.outbox.needs(job, payload) || this.#holds(job, payload)) return false;
    this.#totals.add({ bytes: -this.payloads.remove(payload) });
    return true;
  }

  /** No worker gets the request again: what it said beside its input, such as a bucket's secret, goes. */
  #keepInputAlone({ input, inputFrom, inputTo }: JobRow): void {
    this.payloads.blankAround({ key: input, from: inputFrom, to: inputTo });
  }

  #holds(job: number, payload: number): boolean {
    const query = "SELECT 1 FROM jobs WHERE key = ? AND (input = ? OR output = ?)";
    return this.#sql.exec(query, job, payload, payload).toArray().length > 0;
  }

  #dropOutput(job: JobRow): void {
    if (job.output === null) return;
    this.#sql.exec("UPDATE jobs SET output = NULL WHERE key = ?", job.key);
    this.release(job.key, job.output);
  }

  #dropChunks(job: JobRow): void {
    this.#totals.add({ bytes: -this.chunks.remove(job.key) });
  }

  append(job: JobRow, chunk: unknown): void {
    this.#totals.add({ bytes: this.chunks.add(job.key, chunk) });
  }

  /** What was streamed and not handed out yet; it is gone afterwards. */
  drain(job: JobRow): string[] {
    const { items, bytes } = this.chunks.drain(job.key);
    this.#totals.add({ bytes: -bytes });
    return items;
  }

  /**
   * Removes all that wait. Only jobs that were retried while a notice still carries their input go one by one: the
   * others go in a few statements, since a full queue would hold up every other call for seconds.
   */
  purge(now: number): number {
    const removed = this.totals.waiting;
    if (removed === 0) return 0;
    const owed = "SELECT * FROM jobs WHERE status = 'IN_QUEUE' AND key IN (SELECT job FROM outbox)";
    for (const job of this.#sql.exec<JobRow>(owed).toArray()) this.move(job, "purged", now);
    const inputs = "SELECT input FROM jobs WHERE status = 'IN_QUEUE'";
    const sizes = `SELECT COALESCE(SUM(LENGTH(bytes)), 0) AS size FROM payloads WHERE key IN (${inputs})`;
    const { size } = this.#sql.exec<{ size: number }>(sizes).one();
    this.#sql.exec(`DELETE FROM payloads WHERE key IN (${inputs})`);
    this.#sql.exec("DELETE FROM jobs WHERE status = 'IN_QUEUE'");
    const { waiting, waitingLow } = this.totals;
    this.#totals.add({ jobs: -waiting, waiting: -waiting, waitingLow: -waitingLow, bytes: -size });
    return removed;
  }

  #delete(job: JobRow): void {
    mustFind(this.#sql.exec("DELETE FROM jobs WHERE key = ? AND status = ?", job.key, job.status));
    this.#dropChunks(job);
    if (!this.release(job.key, job.input)) this.#keepInputAlone(job);
    this.release(job.key, job.output);
    this.#totals.add({ jobs: -1 });
  }

  #write(job: JobRow, from: JobState): void {
    const written = this.#sql.exec(
      `UPDATE jobs SET status = ?, position = ?, queuedAt = ?, takenAt = ?, finishedAt = ?, ttlMs = ?, worker = ?,
         retries = ?, error = ?, output = ?, dueAt = ?, lostAt = ? WHERE key = ? AND status = ?`,
      job.status,
      job.position,
      job.queuedAt,
      job.takenAt,
      job.finishedAt,
      job.ttlMs,
      job.worker,
      job.retries,
      job.error,
      job.output,
      job.dueAt,
      job.lostAt,
      job.key,
      from,
    );
    mustFind(written);
  }
}

/** A row that has moved since it was read must not be counted twice: the transaction is taken back, with its totals. */
function mustFind({ rowsWritten }: { rowsWritten: number }): void {
  if (rowsWritten === 0) throw new Error("the job has moved since it was read");
}
