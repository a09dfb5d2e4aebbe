// Billing: by what really ran, hour by hour, in every bucket, grouping and filter.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { mostSums } from "../../../src/platform/management/billing-report.ts";
import { Executed } from "../../../src/platform/queue/executed.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { ask, endpoint, type Json, pod, refused, send, template, volume } from "./management-client.ts";

interface BillingRecord extends Record<string, unknown> {
  readonly amount: number;
  readonly time: string;
}

const minute = 60_000;
const hour = 60 * minute;
/** A Sunday, half past eleven at night, on the last day of a year. */
const start = Date.UTC(2045, 11, 31, 23, 30);
const iso = (moment: number) => new Date(moment).toISOString();

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: start }));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const later = (ms: number) => vi.setSystemTime(Date.now() + ms);
const bill = (of: "pods" | "endpoints" | "networkvolumes", query = "") =>
  ask<BillingRecord[]>("north", "GET", `/billing/${of}?${query}`);
const midnight = start + 30 * minute;

describe("Pods", () => {
  it("are billed by the clock while they run, each hour rounded down", async () => {
    const { id } = await pod("north", { gpuTypeIds: ["NVIDIA L4"] });
    later(hour);
    await ask("north", "POST", `/pods/${id}/stop`);
    later(hour);
    await ask("north", "POST", `/pods/${id}/start`);
    later(1000);
    expect(await bill("pods", "bucketSize=hour")).toEqual([
      { amount: 0.215, gpuTypeId: "NVIDIA L4", time: iso(start - 30 * minute), timeBilledMs: 30 * minute },
      { amount: 0.215, gpuTypeId: "NVIDIA L4", time: iso(midnight), timeBilledMs: 30 * minute },
      // A second at 0.43 USD an hour is 119.4 millionths.
      { amount: 0.000119, gpuTypeId: "NVIDIA L4", time: iso(midnight + hour), timeBilledMs: 1000 },
    ]);
  });

  it("come in buckets of every size, which add up to the same", async () => {
    const { id: podId } = await pod("north");
    later(49 * hour);
    await ask("north", "DELETE", `/pods/${podId}`);
    const buckets = async (size: string) =>
      (await bill("pods", `bucketSize=${size}&grouping=podId`)) as BillingRecord[];
    const times = async (size: string) => (await buckets(size)).map(({ time }) => time.slice(0, 10));
    expect(await times("hour")).toHaveLength(50);
    expect(await times("day")).toEqual(["2045-12-31", "2046-01-01", "2046-01-02", "2046-01-03"]);
    expect(await times("week")).toEqual(["2045-12-25", "2046-01-01"]);
    expect(await times("month")).toEqual(["2045-12-01", "2046-01-01"]);
    expect(await times("year")).toEqual(["2045-01-01", "2046-01-01"]);
    for (const size of ["hour", "day", "week", "month", "year"]) {
      const records = await buckets(size);
      expect(records.every((record) => record["podId"] === podId)).toBe(true);
      expect(Math.round(records.reduce((sum, { amount }) => sum + amount, 0) * 1e6)).toBe(33_810_000);
    }
    expect(await bill("pods")).toEqual(await bill("pods", "bucketSize=day&grouping=gpuTypeId"));
  });

  it("are found by Pod, by GPU type and by time", async () => {
    const one = await pod("north", { gpuTypeIds: ["NVIDIA L4"] });
    const two = await pod("north", { gpuTypeIds: ["NVIDIA A40"] });
    later(hour);
    const by = async (query: string, name = "podId") =>
      (await bill("pods", `bucketSize=year&grouping=podId&startTime=${iso(midnight)}&${query}`)).map((r) => r[name]);
    expect((await by("")).sort()).toEqual([one.id, two.id].sort());
    expect(await by(`podId=${one.id}`)).toEqual([one.id]);
    expect(await by("gpuTypeId=NVIDIA%20A40")).toEqual([two.id]);
    expect(await by(`podId=${one.id}&gpuTypeId=NVIDIA%20A40`)).toEqual([]);
    const within = (from: number, to: number) => bill("pods", `startTime=${iso(from)}&endTime=${iso(to)}`);
    expect(await within(start - 2 * hour, start - hour)).toEqual([]);
    expect(await within(midnight, midnight + hour)).toMatchObject([{ timeBilledMs: 30 * minute }, {}]);
    expect(await within(midnight + hour, midnight + 2 * hour)).toEqual([]);
  });

  it("are billed by what they were when they are changed, and after the object slept", async () => {
    const { id } = await pod("north", { gpuTypeIds: ["NVIDIA L4"] });
    later(10 * minute);
    await evictDurableObject(env.ACCOUNT.getByName("north"));
    later(10 * minute);
    await ask("north", "PATCH", `/pods/${id}`, { imageName: "example.com/other:1" });
    await runDurableObjectAlarm(env.ACCOUNT.getByName("north"));
    later(5 * minute);
    const [record] = await bill("pods", "bucketSize=year");
    expect(record).toMatchObject({ timeBilledMs: 25 * minute, amount: Math.floor((0.43e6 * 25) / 60) / 1e6 });
  });
});

describe("endpoints", () => {
  /** A job that a worker runs for as long. */
  async function work(id: string, worker: string, ms: number, ending: "done" | "cancel" | "go on" = "done") {
    const policy = { executionTimeout: 24 * hour };
    const { json } = await send("north", "POST", `/v2/${id}/run`, { input: {}, policy });
    const job = (json as Json).id;
    await send("north", "GET", `/v2/${id}/job-take/${worker}`);
    later(ms);
    if (ending === "done") await send("north", "POST", `/v2/${id}/job-done/${worker}/${job}`, { output: 1 });
    if (ending === "cancel") await send("north", "POST", `/v2/${id}/cancel/${job}`);
    return job;
  }
  /** The queue tells its account what ran. */
  async function tell(id: string) {
    later(10_000);
    await runDurableObjectAlarm(env.ENDPOINT_QUEUE.getByName(`north/${id}`));
  }

  it("are billed by the run time of their jobs, cut at the full hour, however a job ended", async () => {
    const { id } = await endpoint("north", { gpuTypeIds: ["NVIDIA L4"], gpuCount: 2 });
    await work(id, "w1", 40 * minute);
    await work(id, "w1", 5 * minute, "cancel");
    await tell(id);
    // Two L4 at 0.684 USD an hour.
    expect(await bill("endpoints", "bucketSize=hour")).toEqual([
      { amount: 0.684, endpointId: id, time: iso(midnight - hour), timeBilledMs: 30 * minute },
      { amount: 0.342, endpointId: id, time: iso(midnight), timeBilledMs: 15 * minute },
    ]);
  });

  it("are billed by what status answers call the execution time", async () => {
    const { id } = await endpoint("north");
    const job = await work(id, "w1", 12_345);
    const { json } = await send("north", "GET", `/v2/${id}/status/${job}`);
    await tell(id);
    expect(json).toMatchObject({ executionTime: 12_345 });
    expect(await bill("endpoints")).toMatchObject([{ timeBilledMs: 12_345 }]);
  });

  it("are grouped by worker and GPU type, and found by everything that they were made of", async () => {
    const { id: templateId } = await template("north", { imageName: "example.com/one:1", isServerless: true });
    const one = await endpoint("north", { templateId, gpuTypeIds: ["NVIDIA L4"], dataCenterIds: ["EU-RO-1"] });
    const two = await endpoint("north", { gpuTypeIds: ["NVIDIA A40"], dataCenterIds: ["US-TX-1", "EU-RO-1"] });
    await work(one.id, "w1", 1000);
    await work(one.id, "w2", 1000);
    await work(two.id, "w3", 1000);
    await tell(one.id);
    await tell(two.id);
    const by = async (query: string, name: string) => (await bill("endpoints", query)).map((record) => record[name]);
    expect((await by("", "endpointId")).sort()).toEqual([one.id, two.id].sort());
    expect(await by("grouping=podId", "podId")).toEqual(["w1", "w2", "w3"]);
    expect(await by("grouping=gpuTypeId", "gpuTypeId")).toEqual(["NVIDIA A40", "NVIDIA L4"]);
    const filters: [string, string[]][] = [
      [`endpointId=${one.id}`, [one.id]],
      ["gpuTypeId=NVIDIA%20A40", [two.id]],
      ["gpuTypeId=NVIDIA%20A40&gpuTypeId=NVIDIA%20L40", [two.id]],
      ["dataCenterId=EU-RO-1", [one.id]],
      [`templateId=${templateId}`, [one.id]],
      ["imageName=example.com%2Fone%3A1", [one.id]],
      ["imageName=unknown", []],
    ];
    for (const [query, expected] of filters) expect(await by(query, "endpointId"), query).toEqual(expected);
  });

  it("are billed by the price of their time when they change, and stay billed when they are gone", async () => {
    const { id } = await endpoint("north", { gpuTypeIds: ["NVIDIA L4"] });
    await work(id, "w1", minute);
    await ask("north", "PATCH", `/endpoints/${id}`, { gpuTypeIds: ["NVIDIA A40"] });
    await work(id, "w1", minute);
    const running = await work(id, "w1", minute, "go on");
    await send("north", "GET", `/v2/${id}/ping/w1?job_id=${running}`);
    await ask("north", "DELETE", `/endpoints/${id}`);
    expect(await bill("endpoints", "grouping=gpuTypeId")).toMatchObject([
      { gpuTypeId: "NVIDIA A40", timeBilledMs: 2 * minute, amount: 0.0408 },
      { gpuTypeId: "NVIDIA L4", timeBilledMs: minute, amount: 0.0114 },
    ]);
  });

  it("hear of each run once, however often it is told", async () => {
    const { id } = await endpoint("north");
    const queue = env.ENDPOINT_QUEUE.getByName(`north/${id}`);
    await work(id, "w1", minute);
    const rows = await runInDurableObject(queue, (_, { storage }) =>
      storage.sql
        .exec<{ meter: number; hour: number; worker: string; ms: number }>(
          "SELECT meter, hour, worker, ms FROM executed",
        )
        .toArray(),
    );
    await env.ACCOUNT.getByName("north").recordExecuted("another", rows);
    expect(await bill("endpoints")).toEqual([]);
    await env.ACCOUNT.getByName("north").recordExecuted(id, rows);
    await tell(id);
    await work(id, "w1", minute);
    await tell(id);
    await tell(id);
    await env.ACCOUNT.getByName("north").recordExecuted(id, rows);
    expect(await bill("endpoints")).toMatchObject([{ timeBilledMs: 2 * minute }]);
  });

  it("keep what was not heard, and tell it again", async () => {
    const { id } = await endpoint("north");
    await work(id, "w1", minute);
    const queue = env.ENDPOINT_QUEUE.getByName(`north/${id}`);
    later(10_000);
    await runInDurableObject(queue, (_, { storage }) =>
      new Executed(storage.sql, () => undefined).report(Date.now(), () =>
        Promise.reject(new Error("the account is not there")),
      ),
    );
    expect(await bill("endpoints")).toEqual([]);
    await evictDurableObject(queue);
    await tell(id);
    expect(await bill("endpoints")).toMatchObject([{ timeBilledMs: minute }]);
  });
});

describe("network volumes", () => {
  it("are billed by the clock and their size, all in one", async () => {
    const { id } = await volume("north", { size: 100 });
    later(30 * minute);
    await ask("north", "PATCH", `/networkvolumes/${id}`, { size: 300 });
    const other = await volume("north", { size: 50 });
    later(hour);
    await ask("north", "DELETE", `/networkvolumes/${other.id}`);
    later(hour);
    const none = { highPerformanceStorageAmount: 0, highPerformanceStorageDiskSpaceBilledGb: 0 };
    expect(await bill("networkvolumes", `bucketSize=hour&endTime=${iso(midnight + 2 * hour)}`)).toEqual([
      { amount: 0.005, diskSpaceBilledGb: 100, time: iso(midnight - hour), ...none },
      { amount: 0.035, diskSpaceBilledGb: 350, time: iso(midnight), ...none },
      { amount: 0.03, diskSpaceBilledGb: 300, time: iso(midnight + hour), ...none },
    ]);
  });
});

describe("a question", () => {
  it("is about the last 30 days where it does not say", async () => {
    await pod("north");
    later(40 * 24 * hour);
    const records = await bill("pods", "bucketSize=day");
    expect(records[0]?.time).toBe(iso(midnight + 9 * 24 * hour));
    expect(records).toHaveLength(31);
  });

  it("that more records answer than one call carries is refused, and answered once it is narrower", async () => {
    const { id } = await pod("north");
    await runInDurableObject(env.ACCOUNT.getByName("north"), (_, { storage: { sql } }) => {
      const { key } = sql.exec<{ key: number }>("SELECT key FROM meters").one();
      sql.exec(
        `WITH RECURSIVE hours(hour) AS (SELECT 1 UNION ALL SELECT hour + 1 FROM hours WHERE hour <= ?)
         INSERT INTO usage SELECT 'pod', hour, ?, '', 1 FROM hours`,
        mostSums,
        key,
      );
    });
    const all = "bucketSize=hour&grouping=podId&startTime=1970-01-01T00:00:00Z&endTime=2000-01-01T00:00:00Z";
    expect(await refused("north", "INVALID_REQUEST", "GET", `/billing/pods?${all}`)).toMatch(/^startTime.*bucketSize/);
    const [first, ...others] = await bill("pods", all.replace("hour", "year"));
    expect(first).toMatchObject({ podId: id, time: "1970-01-01T00:00:00.000Z" });
    expect(others.length).toBeGreaterThan(3);
  });

  it.each([
    ["pods", "bucketSize=decade", "bucketSize"],
    ["pods", "startTime=yesterday", "startTime"],
    ["pods", `startTime=${iso(start)}&endTime=${iso(start - 1)}`, "startTime"],
    ["pods", "grouping=endpointId", "grouping"],
    ["pods", "gpuTypeId=abacus", "gpuTypeId"],
    ["pods", "podId=%21", "podId"],
    ["endpoints", "dataCenterId=MOON-1", "dataCenterId"],
    ["endpoints", "grouping=none", "grouping"],
    ["networkvolumes", "endTime=2045", "endTime"],
  ])("about %s with %s is refused", async (of, query, path) => {
    expect(await refused("north", "INVALID_REQUEST", "GET", `/billing/${of}?${query}`)).toMatch(new RegExp(`^${path}`));
  });
});
