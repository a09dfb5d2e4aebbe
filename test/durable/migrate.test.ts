// Tables move forward by numbered steps: each once, all or nothing.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { migrate } from "../../src/durable/migrate.ts";
import { emptyStorage } from "../support/empty-storage.ts";

afterEach(emptyStorage);

/** An object's storage, emptied of what the object itself has made. */
function onEmptyStorage<T>(act: (storage: DurableObjectStorage) => T): Promise<T> {
  return runInDurableObject(env.CONTROL.getByName("migrating"), async (_, { storage }) => {
    await storage.deleteAll();
    return act(storage);
  });
}
const rows = (storage: DurableObjectStorage) => storage.sql.exec("SELECT * FROM things").toArray();
const first = "CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('one');";
const second = "ALTER TABLE things ADD COLUMN size INTEGER; INSERT INTO things VALUES ('two', 2);";

describe("migrate", () => {
  it("takes every step once, however often the object wakes", async () => {
    const seen = await onEmptyStorage((storage) => {
      migrate(storage, [first]);
      migrate(storage, [first]);
      const before = rows(storage);
      migrate(storage, [first, second]);
      migrate(storage, [first, second]);
      return { before, after: rows(storage) };
    });
    expect(seen.before).toEqual([{ name: "one" }]);
    expect(seen.after).toEqual([
      { name: "one", size: null },
      { name: "two", size: 2 },
    ]);
  });

  it("takes all of the steps or none", async () => {
    const seen = await onEmptyStorage((storage) => {
      migrate(storage, [first]);
      expect(() => migrate(storage, [first, second, "NO SUCH SQL"])).toThrow();
      const failed = rows(storage);
      migrate(storage, [first, second]);
      return { failed, later: rows(storage).length };
    });
    expect(seen).toEqual({ failed: [{ name: "one" }], later: 2 });
  });

  it("leaves what a later version has made alone", async () => {
    const seen = await onEmptyStorage((storage) => {
      migrate(storage, [first, second]);
      migrate(storage, [first]);
      migrate(storage, [first, second]);
      return rows(storage).length;
    });
    expect(seen).toBe(2);
  });
});
