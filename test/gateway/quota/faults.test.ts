// Whatever goes wrong, in whatever order: counters are the sums of rows, and a job is charged once.
import { runInDurableObject } from "cloudflare:test";
import fc from "fast-check";
import { afterAll, beforeAll, describe, it, vi } from "vitest";
import { amount } from "../../support/amount.ts";
import { stubOf } from "./admissions.ts";
import { foundLives } from "./found-lives.ts";
import { commands, Ledger } from "./ledger-model.ts";

const runs = amount(400);

function empty(sql: SqlStorage): void {
  const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
  for (const { name } of tables) if (!name.startsWith("_cf_")) sql.exec(`DROP TABLE ${name}`);
}

beforeAll(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
});
afterAll(() => void vi.restoreAllMocks());

describe("a meter under faults", () => {
  it(`keeps its sums, its limits and its word over ${runs} lives`, { timeout: 120_000 }, async () => {
    await runInDurableObject(stubOf("user:faults"), async (_object, state) => {
      await fc.assert(
        fc.asyncProperty(commands, async (list) => {
          empty(state.storage.sql);
          const ledger = new Ledger(state);
          for (const command of list) {
            await ledger.run(command);
            ledger.check();
          }
          await ledger.finish();
        }),
        { numRuns: runs, examples: foundLives },
      );
      await state.storage.deleteAlarm();
    });
  });
});
