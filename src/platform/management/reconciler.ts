// Brings other objects in step with an account: a task is stored with the change, tried at once, and again until it is done.
import { nameOfFault } from "../../errors.ts";

export type TaskKind =
  /** The endpoint's queue learns its settings. */
  | "configure"
  /** The queue of a deleted endpoint is emptied for good. */
  | "wipe"
  /** The public catalogue learns what a template is now. */
  | "publish";

export interface Task extends Record<string, SqlStorageValue> {
  kind: TaskKind;
  id: string;
  revision: number;
}

export const retryMs = 10_000;

export class Reconciler {
  readonly #sql: SqlStorage;
  readonly #perform: (task: Task) => Promise<void>;
  /** By the thing's id. Tasks on the same one run one after the other, whatever they do, so that the latest state wins. */
  readonly #turns = new Map<string, Promise<boolean>>();

  constructor(sql: SqlStorage, perform: (task: Task) => Promise<void>) {
    this.#sql = sql;
    this.#perform = perform;
  }

  add(kind: TaskKind, id: string, dueAt: number): void {
    this.#sql.exec(
      `INSERT INTO duties (kind, id, revision, dueAt) VALUES (?, ?, 1, ?)
       ON CONFLICT DO UPDATE SET revision = revision + 1, dueAt = MIN(dueAt, excluded.dueAt)`,
      kind,
      id,
      dueAt,
    );
  }

  nextDue(): number | undefined {
    return this.#sql.exec<{ at: number | null }>("SELECT MIN(dueAt) AS at FROM duties").one().at ?? undefined;
  }

  /** What is due, some of it. It is due again later, in case the object restarts before it is done. */
  claim(now: number, most: number): Task[] {
    const query = `
      UPDATE duties SET dueAt = ? WHERE (kind, id) IN (
        SELECT kind, id FROM duties WHERE dueAt <= ? ORDER BY dueAt LIMIT ?
      ) RETURNING kind, id, revision`;
    return this.#sql.exec<Task>(query, now + retryMs, now, most).toArray();
  }

  /** Tells whether the task is done. One that failed is tried again later. */
  perform(kind: TaskKind, id: string, now: number): Promise<boolean> {
    const turn = (this.#turns.get(id) ?? Promise.resolve(true)).then(() => this.#try(kind, id, now));
    this.#turns.set(id, turn);
    return turn.finally(() => {
      if (this.#turns.get(id) === turn) this.#turns.delete(id);
    });
  }

  async #try(kind: TaskKind, id: string, now: number): Promise<boolean> {
    const query = "SELECT kind, id, revision FROM duties WHERE kind = ? AND id = ?";
    const task = this.#sql.exec<Task>(query, kind, id).toArray()[0];
    if (!task) return true;
    try {
      await this.#perform(task);
    } catch (error) {
      this.#sql.exec("UPDATE duties SET dueAt = ? WHERE kind = ? AND id = ?", now + retryMs, kind, id);
      console.warn(JSON.stringify({ task: kind, id, error: nameOfFault(error) }));
      return false;
    }
    const done = "DELETE FROM duties WHERE kind = ? AND id = ? AND revision = ?";
    this.#sql.exec(done, kind, id, task.revision);
    return true;
  }
}
