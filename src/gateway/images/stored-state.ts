// The one small state of a `GENERATION` object. An object that has nothing to say stores nothing, not even its tables.
import { migrate } from "../../wire/migrate.ts";

const steps = ["CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT NOT NULL)"];

export class StoredState<T extends object> {
  readonly #storage: DurableObjectStorage;
  readonly #empty: T;
  #value: T | undefined;

  constructor(storage: DurableObjectStorage, empty: T) {
    this.#storage = storage;
    this.#empty = empty;
  }

  get value(): T {
    this.#value ??= this.#read() ?? this.#empty;
    return this.#value;
  }

  /** The object forgets all of it at that moment. */
  set(value: T, forgetAt: number): void {
    this.#value = value;
    migrate(this.#storage, steps);
    this.#storage.sql.exec("INSERT OR REPLACE INTO state VALUES (1, ?)", JSON.stringify(value));
    void this.#storage.setAlarm(forgetAt);
  }

  async forget(): Promise<void> {
    this.#value = this.#empty;
    await this.#storage.deleteAll();
  }

  #read(): T | undefined {
    const known = this.#storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'state'").toArray().length > 0;
    if (!known) return undefined;
    migrate(this.#storage, steps);
    const row = this.#storage.sql.exec<{ json: string }>("SELECT json FROM state").toArray()[0];
    return row && (JSON.parse(row.json) as T);
  }
}
