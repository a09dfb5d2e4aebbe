// Whatever goes wrong, in whatever order: a model beside the meter says what the balance must be.
import { runInDurableObject } from "cloudflare:test";
import fc from "fast-check";
import { afterAll, beforeAll, describe, it, vi } from "vitest";
import { amount } from "../../support/amount.ts";
import { stubOf } from "./admissions.ts";
import { commands, Ledger } from "./ledger-model.ts";

const runs = amount(3000);
const tables = [
  "jobs",
  "idempotency",
  "windows",
  "spend",
  "leases",
  "outbox",
  "outbox_bodies",
  "settings",
  "revocations",
];

function empty(sql: SqlStorage): void {
  for (const table of tables) sql.exec(`DELETE FROM ${table}`);
  sql.exec("UPDATE earlier SET known = 0, assumed = 0");
}

beforeAll(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "error").mockReturnValue();
});
afterAll(() => void vi.restoreAllMocks());

describe("a meter under faults", () => {
  it(`keeps its balance, its reservations and its count over ${runs} runs`, async () => {
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
        { numRuns: runs },
      );
      await state.storage.deleteAlarm();
    });
  });
});
