// Which admissions the counters in SQL have yet to learn of. An admission writes its own row and nothing else: memory
// counts it at once, SQL with whatever is written next, and an object that wakes in between counts from the rows.
import type { JobRow } from "./metered-jobs.ts";

/** So many rows at most are counted anew when the object wakes. */
const maxUncounted = 500;

export class Journal {
  readonly #sql: SqlStorage;
  #last: number;
  #counted: number;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#counted = sql.exec<{ turn: number }>("SELECT turn FROM counted").one().turn;
    this.#last = this.#counted;
  }

  /** In their order. They are open: no job ends without SQL's counters being written. */
  uncounted(): JobRow[] {
    const query = "SELECT * FROM jobs WHERE endedAt IS NULL AND turn > ? ORDER BY turn";
    const rows = this.#sql.exec<JobRow>(query, this.#counted).toArray();
    this.#last = rows.at(-1)?.turn ?? this.#counted;
    return rows;
  }

  get isLong(): boolean {
    return this.#last - this.#counted >= maxUncounted;
  }

  nextTurn(): number {
    this.#last += 1;
    return this.#last;
  }

  /** SQL's counters know of all admissions. */
  close(): void {
    if (this.#last === this.#counted) return;
    this.#sql.exec("UPDATE counted SET turn = ?", this.#last);
    this.#counted = this.#last;
  }
}
