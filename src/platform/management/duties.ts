// What an account owes to other objects: written in the transaction of the change, done at once, tried again until done.
import { nameOfFault } from "../../errors.ts";

export type DutyKind =
  /** The endpoint's queue learns its settings. */
  | "configure"
  /** A deleted endpoint's queue goes for good. */
  | "wipe"
  /** The public catalogue learns what a template is now. */
  | "publish"
  /** The creator of a borrowed template learns what was spent with it. */
  | "credit";

export interface Duty extends Record<string, SqlStorageValue> {
  kind: DutyKind;
  id: string;
  revision: number;
}

const retryMs = 10_000;
/** As many as one alarm does before it makes room for calls. */
const atOnce = 50;

export class Duties {
  readonly #sql: SqlStorage;
  readonly #perform: (duty: Duty) => Promise<void>;
  /** One at a time for each thing, so that the last word is the latest. */
  readonly #turns = new Map<string, Promise<boolean>>();

  constructor(sql: SqlStorage, perform: (duty: Duty) => Promise<void>) {
    this.#sql = sql;
    this.#perform = perform;
  }

  add(kind: DutyKind, id: string, dueAt: number): void {
    this.#sql.exec(
      `INSERT INTO duties (kind, id, revision, dueAt) VALUES (?, ?, 1, ?)
       ON CONFLICT DO UPDATE SET revision = revision + 1, dueAt = MIN(dueAt, excluded.dueAt)`,
      ...[kind, id, dueAt],
    );
  }

  nextDue(): number | undefined {
    return this.#sql.exec<{ at: number | null }>("SELECT MIN(dueAt) AS at FROM duties").one().at ?? undefined;
  }

  async performDue(now: number): Promise<void> {
    const query = "SELECT kind, id, revision FROM duties WHERE dueAt <= ? ORDER BY dueAt LIMIT ?";
    const due = this.#sql.exec<Duty>(query, now, atOnce).toArray();
    await Promise.all(due.map(({ kind, id }) => this.perform(kind, id, now)));
  }

  /** Whether it is done; what is not stays owed. */
  perform(kind: DutyKind, id: string, now: number): Promise<boolean> {
    const key = `${kind}/${id}`;
    const turn = (this.#turns.get(key) ?? Promise.resolve(true)).then(() => this.#try(kind, id, now));
    this.#turns.set(key, turn);
    return turn.finally(() => {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    });
  }

  async #try(kind: DutyKind, id: string, now: number): Promise<boolean> {
    const query = "SELECT kind, id, revision FROM duties WHERE kind = ? AND id = ?";
    const duty = this.#sql.exec<Duty>(query, kind, id).toArray()[0];
    if (!duty) return true;
    try {
      await this.#perform(duty);
    } catch (error) {
      this.#sql.exec("UPDATE duties SET dueAt = ? WHERE kind = ? AND id = ?", now + retryMs, kind, id);
      console.warn(JSON.stringify({ duty: kind, id, error: nameOfFault(error) }));
      return false;
    }
    const done = "DELETE FROM duties WHERE kind = ? AND id = ? AND revision = ?";
    this.#sql.exec(done, kind, id, duty.revision);
    return true;
  }
}
