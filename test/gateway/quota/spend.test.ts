// `GET /usage?by=`: what ended jobs cost, by day and model, from sums that change with the jobs' own rows.
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { testSettings } from "../../support/settings.ts";
import { ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const dayMs = 86_400_000;
let now = noon;

async function mint(user: string): Promise<string> {
  const body = { user, plan: "unlimited" };
  const minted = await send(isolate(), "POST", "/tokens", { key: testSettings.APP_SECRET, body });
  return (await minted.json<{ token: string }>()).token;
}

/** Of ada's meter, by the tests' clock. */
async function spentBy(by: string): Promise<unknown> {
  await setClock();
  const response = await send(isolate(), "GET", `/usage?by=${by}`, { key: await mint("ada") });
  return (await response.json<{ spent: unknown }>()).spent;
}

async function setClock(): Promise<void> {
  await runInDurableObject(stubOf("user:ada"), (meter) => {
    meter.clock = () => now;
  });
}

/** Admitted now, and ended at once. */
async function spend(change: Parameters<typeof request>[0], end: Parameters<typeof ending>[1] = {}): Promise<string> {
  await setClock();
  const asked = request(change);
  await meterOf("user:ada").admit(asked);
  const at = { askedAt: now + 500, seenAt: now + 1000, completedAt: now + 1000 };
  await meterOf("user:ada").settle(ending(asked.admission, { ...at, ...end }));
  return asked.admission;
}

/** An earlier release moves the row of each ended job with its end. */
async function movedAtOnce(): Promise<void> {
  await meterOf("user:ada").spent("user:ada", ["day"]);
}

beforeEach(() => {
  now = noon;
  vi.spyOn(console, "log").mockReturnValue();
  vi.spyOn(console, "warn").mockReturnValue();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("GET /usage?by=", () => {
  it("sums up ended jobs by day and model, by either, and by none", async () => {
    await spend({ admission: "1" });
    await spend({ admission: "2" }, { costMicroUsd: 5_000 });
    await spend({ admission: "3", model: "sora", kind: "video" }, { status: "FAILED" });
    now += dayMs;
    await spend({ admission: "4" }, { costMicroUsd: null });
    await meterOf("user:ada").admit(request({ admission: "5" }));
    const flux = { model: "flux", assumedUsd: 0 };
    expect(await spentBy("day,model")).toEqual([
      { day: "2031-06-17", model: "flux", jobs: 1, usd: 0.02, assumedUsd: 0.02 },
      { day: "2031-06-16", ...flux, jobs: 2, usd: 0.02 },
      { day: "2031-06-16", model: "sora", jobs: 1, usd: 0, assumedUsd: 0 },
    ]);
    expect(await spentBy("model,day")).toEqual(await spentBy("day,model"));
    expect(await spentBy("day")).toEqual([
      { day: "2031-06-17", jobs: 1, usd: 0.02, assumedUsd: 0.02 },
      { day: "2031-06-16", jobs: 3, usd: 0.02, assumedUsd: 0 },
    ]);
    expect(await spentBy("model")).toEqual([
      { model: "flux", jobs: 3, usd: 0.04, assumedUsd: 0.02 },
      { model: "sora", jobs: 1, usd: 0, assumedUsd: 0 },
    ]);
    const response = await send(isolate(), "GET", "/usage", { key: await mint("ada") });
    expect(await response.json()).not.toHaveProperty("spent");
  });

  it("is corrected with what was assumed, at the day of admission, and forgets what was released", async () => {
    const admission = await spend({}, { costMicroUsd: null });
    now += dayMs;
    await setClock();
    const late = { askedAt: now, seenAt: now, completedAt: now, costMicroUsd: 7_000 };
    await meterOf("user:ada").settle(ending(admission, late));
    expect(await spentBy("day")).toEqual([{ day: "2031-06-16", jobs: 1, usd: 0.007, assumedUsd: 0 }]);
  });

  it("shows nobody what others spent at the same address", async () => {
    await spend({ admission: "1" });
    await spend({ admission: "2", owner: "user:bob" });
    expect(await spentBy("model")).toEqual([{ model: "flux", jobs: 1, usd: 0.015, assumedUsd: 0 }]);
  });

  it("keeps 35 days, and survives an eviction", async () => {
    await spend({ admission: "1" });
    now += 34 * dayMs;
    await spend({ admission: "2" });
    await evictDurableObject(stubOf("user:ada"));
    expect(await spentBy("day")).toHaveLength(2);
    now += dayMs;
    expect(await spentBy("day")).toHaveLength(1);
    await setClock();
    await runInDurableObject(stubOf("user:ada"), async (meter, { storage: { sql } }) => {
      expect(sql.exec("SELECT * FROM spend").toArray()).toHaveLength(2);
      await meter.alarm();
      expect(sql.exec("SELECT * FROM spend").toArray()).toHaveLength(1);
    });
  });

  it("begins with the ended jobs of a meter that a release without it wrote", async () => {
    await spend({ admission: "1" });
    await movedAtOnce();
    await runInDurableObject(stubOf("user:ada"), (_meter, { storage: { sql } }) => {
      sql.exec("DROP TABLE spend");
      sql.exec(`UPDATE state SET json = replace(json, ',"spend"', '')`);
      sql.exec(`UPDATE state SET json = replace(json, '"spend",', '')`);
    });
    await evictDurableObject(stubOf("user:ada"));
    const first = { day: "2031-06-16", jobs: 1, usd: 0.015, assumedUsd: 0 };
    expect(await spentBy("day")).toEqual([first]);
    await spend({ admission: "2" });
    expect(await spentBy("day")).toEqual([{ ...first, jobs: 2, usd: 0.03 }]);
  });

  it("takes in what a release without it ended in between, and keeps what has no rows any more", async () => {
    await spend({ admission: "1" });
    now += dayMs;
    await spend({ admission: "2" });
    await spend({ admission: "3" });
    const asTheOtherLeavesIt = async (rows: string) => {
      await movedAtOnce();
      await runInDurableObject(stubOf("user:ada"), (_meter, { storage: { sql } }) => {
        sql.exec(rows);
        sql.exec(`UPDATE state SET json = replace(json, ',"followsSpend":true', '')`);
      });
    };
    await asTheOtherLeavesIt("DELETE FROM ended WHERE admission = '1'; UPDATE spend SET jobs = 1, known = 1");
    await evictDurableObject(stubOf("user:ada"));
    const days = [
      { day: "2031-06-17", jobs: 2, usd: 0.03, assumedUsd: 0 },
      { day: "2031-06-16", jobs: 1, usd: 0.000001, assumedUsd: 0 },
    ];
    expect(await spentBy("day")).toEqual(days);
    await asTheOtherLeavesIt("UPDATE spend SET jobs = 1, known = 1");
    await evictDurableObject(stubOf("user:ada"));
    await spend({ admission: "4" });
    expect(await spentBy("day")).toEqual([{ ...days[0], jobs: 3, usd: 0.045 }, days[1]]);
    await spend({ admission: "5" });
    expect(await spentBy("day")).toEqual([{ ...days[0], jobs: 4, usd: 0.06 }, days[1]]);
  });

  it("of a caller without any job is empty", async () => {
    expect(await spentBy("day")).toEqual([]);
  });

  it.each(["hour", "", "day,day", "day, model"])("by %j is refused", async (by) => {
    const path = `/usage?by=${encodeURIComponent(by)}`;
    const refused = await refusalOf(await send(isolate(), "GET", path, { key: await mint("ada") }));
    expect(refused).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
  });
});
