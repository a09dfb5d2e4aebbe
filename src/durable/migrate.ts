// Moves a Durable Object's tables forward: numbered SQL, each step once, when the object wakes.

type Storage = Pick<DurableObjectStorage, "sql" | "transactionSync">;

/**
 * Runs the steps that this object has not seen. A step is never edited once deployed: a change is a further step.
 * Steps only add, so that the version before, rolled back to, still finds what it knows.
 */
export function migrate(storage: Storage, steps: readonly string[]): void {
  storage.sql.exec("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)");
  const done = storage.sql.exec<{ version: number }>("SELECT version FROM schema_version").toArray()[0]?.version;
  if ((done ?? 0) >= steps.length) return;
  storage.transactionSync(() => {
    for (const step of steps.slice(done ?? 0)) storage.sql.exec(step);
    const keep = done === undefined ? "INSERT INTO schema_version VALUES (?)" : "UPDATE schema_version SET version = ?";
    storage.sql.exec(keep, steps.length);
  });
}
