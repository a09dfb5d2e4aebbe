// The rate table and the limits, number by number as the contract states them.
import { describe, expect, it } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import { effectiveRate, type RatedOperation, rates, rateWindowMs } from "../../src/contract/rates.ts";

describe("the rate table", () => {
  it.each<[RatedOperation, number, number]>([
    ["runsync", 2000, 400],
    ["run", 1000, 200],
    ["status", 2000, 400],
    ["stream", 2000, 400],
    ["cancel", 100, 20],
    ["purge-queue", 2, Number.POSITIVE_INFINITY],
    ["openai", 2000, 400],
    ["requests", 10, 2],
  ])("%s: %i in ten seconds, %f at once", (operation, requests, concurrent) => {
    expect(rates[operation]).toEqual({ requests, concurrent });
  });

  it("has no operation beside these, and one window", () => {
    expect(Object.keys(rates)).toHaveLength(8);
    expect(rateWindowMs).toBe(10_000);
  });
});

describe("the dynamic rule", () => {
  it.each([
    ["no worker leaves the base", rates.cancel, 0, 50, { requests: 100, concurrent: 20 }],
    ["below both leaves the base", rates.cancel, 1, 20, { requests: 100, concurrent: 20 }],
    ["above the concurrency lifts that alone", rates.cancel, 1, 21, { requests: 100, concurrent: 21 }],
    ["at the rate lifts no rate", rates.cancel, 10, 10, { requests: 100, concurrent: 100 }],
    ["above both lifts both", rates.cancel, 101, 1, { requests: 101, concurrent: 101 }],
    ["unbounded stays unbounded", rates["purge-queue"], 3, 1, { requests: 3, concurrent: Number.POSITIVE_INFINITY }],
  ])("%s", (_, base, workers, perWorker, expected) => {
    expect(effectiveRate(base, workers, perWorker)).toEqual(expected);
  });
});

describe("the limits", () => {
  it("are those of the contract", () => {
    expect(limits).toEqual({
      balanced: { bytes: 31_457_280, noWorkerMs: 120_000, requestMs: 330_000, strictMs: 300_000 },
      runPayloadBytes: 10_485_760,
      runsyncPayloadBytes: 20_971_520,
      streamChunkBytes: 1_000_000,
      waitMs: { min: 1000, max: 300_000, default: 90_000 },
      streamWaitMs: { min: 1000, max: 300_000, default: 10_000 },
      executionTimeoutMs: { min: 5000, max: 604_800_000, default: 600_000 },
      ttlMs: { min: 10_000, max: 604_800_000, default: 86_400_000 },
      runRetentionMs: 1_800_000,
      runsyncRetentionMs: { min: 60_000, max: 300_000 },
      mediaLifetimeMs: 604_800_000,
      webhook: { tries: 3, delayMs: 10_000, timeoutMs: 10_000, urlLength: 2048 },
      takeHoldMs: 90_000,
      workerPingMs: 10_000,
      workerLostMs: 30_000,
    });
  });
});
