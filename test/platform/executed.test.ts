// The run time that an endpoint's queue keeps: until the account was told, and as long as it may grow.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import { hourMs } from "../../src/platform/hours.ts";
import { Executed } from "../../src/platform/queue/executed.ts";
import { emptyStorage } from "../support/empty-storage.ts";

afterEach(emptyStorage);

const now = Date.UTC(2030, 0, 1, 12);
const hour = now / hourMs;
const longestRun = limits.ttlMs.max / hourMs;
const queue = () => env.ENDPOINT_QUEUE.getByName("default/bare");
const plant = (sql: SqlStorage, at: number, worker: string, tellAt: number | null) =>
  sql.exec("INSERT INTO executed VALUES (1, ?, ?, 7, ?)", at, worker, tellAt);

it("is forgotten once it was told and no run is so long that it could grow", async () => {
  await runInDurableObject(queue(), async (_, { storage: { sql } }) => {
    plant(sql, hour - longestRun - 25, "told", null);
    plant(sql, hour - longestRun, "may grow", null);
    plant(sql, hour, "due", now);
    const executed = new Executed(sql, () => 1);
    const workers = () => sql.exec<{ worker: string }>("SELECT worker FROM executed ORDER BY hour").toArray();
    await executed.report(now, async () => {});
    expect(workers().map(({ worker }) => worker)).toEqual(["may grow", "due"]);
    plant(sql, hour - longestRun - 25, "not told", now);
    await executed.report(now + hourMs, () => Promise.reject(new Error("the account is not there")));
    expect(workers().map(({ worker }) => worker)).toEqual(["not told", "may grow", "due"]);
  });
});

it("is answered by a queue that is about to be deleted where it was not told", async () => {
  await runInDurableObject(queue(), (_, { storage: { sql } }) => {
    plant(sql, hour, "told", null);
    plant(sql, hour, "not told", now);
  });
  expect(await queue().retire()).toEqual([{ meter: 1, hour, worker: "not told", ms: 7 }]);
});
