// What jobs cost by owner, day of admission and model: each sum changes with the row of `ended` that it is made of, in one transaction.
import { amountsOf, isShare, type Job } from "./job.ts";
import { dayMs, dayOf } from "./periods.ts";
import type { Tables } from "./tables.ts";

/** Earlier days are forgotten. */
export const spendDays = 35;

export type SpendBy = readonly ("day" | "model")[];

export interface Spent {
  /** Days since 1970, UTC. */
  readonly day?: number;
  readonly model?: string;
  /** Jobs that ended. */
  readonly jobs: number;
  readonly knownMicroUsd: number;
  readonly assumedMicroUsd: number;
}

/** What the rows of ended jobs come to. A meter of the release before this table begins with it. */
const ofEndedJobs = `
  SELECT owner, admittedAt / ${dayMs} AS day, model, COUNT(*) AS jobs,
    SUM(charged * (1 - assumed)) AS known, SUM(charged * assumed) AS assumed
  FROM ended WHERE true GROUP BY 1, 2, 3`;

/** Of a day and a model that ended more jobs than rows are kept, the sum that was there says more. */
const orWhatIsFuller = `
  ON CONFLICT DO UPDATE SET jobs = excluded.jobs, known = excluded.known, assumed = excluded.assumed
  WHERE excluded.jobs >= spend.jobs`;

export class SpendByDay {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  #isFollowed: boolean;

  /** The release before this table ends jobs without it, and leaves `isFollowed` out of the state that it writes. */
  constructor(sql: SqlStorage, tables: Tables, isFollowed = false) {
    this.#sql = sql;
    this.#tables = tables;
    this.#isFollowed = isFollowed && tables.has("spend");
  }

  /** Whether the sums include every row of `ended`. */
  get isFollowed(): boolean {
    return this.#isFollowed;
  }

  /** Applies a change of a job's row, and changes the sums by what it made of the job. */
  follow(job: Job, now: number, apply: () => void): void {
    const before = settled(job);
    apply();
    this.#add(job, before, settled(job), now);
  }

  /** The row has just been moved to those of ended jobs. */
  addEnded(job: Job): void {
    this.#add(job, nothing, settled(job), job.endedAt ?? job.admittedAt);
  }

  /** The row is gone, and what it counted for was never spent. */
  takeBack(job: Job, now: number): void {
    this.#add(job, settled(job), nothing, now);
  }

  /** The sums are made of the rows, this change of them too; done twice it changes nothing. */
  #begin(): void {
    this.#tables.need("spend");
    if (this.#tables.has("ended")) this.#sql.exec(`INSERT INTO spend ${ofEndedJobs} ${orWhatIsFuller}`);
    this.#isFollowed = true;
  }

  #add(job: Job, before: Settled, after: Settled, now: number): void {
    const jobs = after.jobs - before.jobs;
    const known = after.known - before.known;
    const assumed = after.assumed - before.assumed;
    const day = dayOf(job.admittedAt);
    const changesNothing = jobs === 0 && known === 0 && assumed === 0;
    if (changesNothing || isShare(job) || day <= dayOf(now) - spendDays) return;
    if (this.#isFollowed) this.#count([job.owner, day, job.model, jobs, known, assumed]);
    else this.#begin();
  }

  #count(
    row: readonly [owner: string, day: number, model: string, jobs: number, known: number, assumed: number],
  ): void {
    this.#sql.exec(
      `INSERT INTO spend VALUES (?1, ?2, ?3, MAX(0, ?4), MAX(0, ?5), MAX(0, ?6)) ON CONFLICT DO UPDATE
        SET jobs = MAX(0, jobs + ?4), known = MAX(0, known + ?5), assumed = MAX(0, assumed + ?6)`,
      ...row,
    );
  }

  /** Newest day first, and of a day the dearest model. */
  read(owner: string, by: SpendBy, now: number): Spent[] {
    const isThere = this.#tables.has("spend");
    if (isThere && !this.#isFollowed) this.#begin();
    if (!isThere && !this.#tables.has("ended")) return [];
    const names = by.join(", ");
    const query = `
      SELECT ${names}, SUM(jobs) AS jobs, SUM(known) AS knownMicroUsd, SUM(assumed) AS assumedMicroUsd
      FROM ${isThere ? "spend" : `(${ofEndedJobs})`} WHERE owner = ? AND day > ?
      GROUP BY ${names} HAVING SUM(jobs) > 0
      ORDER BY ${by.includes("day") ? "day DESC, " : ""}SUM(known + assumed) DESC, SUM(jobs) DESC, ${names}`;
    return this.#sql.exec<Spent & Record<string, SqlStorageValue>>(query, owner, dayOf(now) - spendDays).toArray();
  }

  prune(now: number): void {
    if (this.#tables.has("spend")) this.#sql.exec("DELETE FROM spend WHERE day <= ?", dayOf(now) - spendDays);
  }
}

interface Settled {
  readonly jobs: number;
  readonly known: number;
  readonly assumed: number;
}

const nothing: Settled = { jobs: 0, known: 0, assumed: 0 };

function settled(job: Job): Settled {
  const { known, assumed } = amountsOf(job);
  return { jobs: job.endedAt === null ? 0 : 1, known, assumed };
}
