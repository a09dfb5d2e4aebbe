// What a job is charged: by what was stated, by what was handed out, or by what was reserved.
import { describe, expect, it } from "vitest";
import { assumedCharge, chargeOf, handedOutPrice } from "../../../src/gateway/quota/charge.ts";
import type { Job } from "../../../src/gateway/quota/job.ts";
import { noon, rowOf } from "./admissions.ts";

const reserved = 20_000;
const text = "granite-4-0-h-small";
const dayMs = 86_400_000;
const bound = { boundAt: noon, upstreamId: "job-1" };

describe("a charge", () => {
  it.each([
    ["COMPLETED", 15_000, 15_000, false],
    ["COMPLETED", 0, 0, false],
    ["COMPLETED", 20_000_000, 20_000_000, false],
    ["COMPLETED", 0.4, 0, false],
    ["COMPLETED", null, reserved, true],
    ["COMPLETED", undefined, reserved, true],
    ["COMPLETED", -1, reserved, true],
    ["COMPLETED", -0.4, reserved, true],
    ["COMPLETED", Number.NaN, reserved, true],
    ["COMPLETED", Number.POSITIVE_INFINITY, reserved, true],
    ["COMPLETED", 1e300, reserved, true],
    ["COMPLETED", "0.02", reserved, true],
    ["FAILED", 5000, 0, false],
    ["FAILED", null, 0, false],
    ["TIMED_OUT", 5000, 5000, false],
    ["TIMED_OUT", null, 0, true],
    ["CANCELLED", 5000, 5000, false],
    ["CANCELLED", null, 0, true],
  ] as const)("of %s at %s is %s", (status, cost, microUsd, assumed) => {
    expect(chargeOf(rowOf({ reserved }), status, cost)).toEqual({ microUsd, assumed });
  });

  it.each<[string, Partial<Job>, number]>([
    ["was never seen", bound, reserved],
    ["waited at its ttl's end", { ...bound, seen: "IN_QUEUE", seenAt: noon + dayMs }, 0],
    ["waited long before its ttl's end", { ...bound, seen: "IN_QUEUE", seenAt: noon + dayMs - 1 }, reserved],
    ["ran", { ...bound, seen: "IN_PROGRESS", seenAt: noon + dayMs }, reserved],
    ["was never bound, and would have been told of", { hasNotice: 1 }, 0],
    ["was never bound, and would not have been told of", { hasNotice: 0 }, reserved],
    ["is in doubt", { hasNotice: 0, doubtedAt: noon }, 0],
  ])("of a job that is gone and %s", (_what, change, microUsd) => {
    expect(assumedCharge(rowOf({ reserved, ...change }), true)).toEqual({ microUsd, assumed: true });
  });

  it("of a job that waited at its ttl's end and cannot be asked about is its reservation: it may have been prolonged", () => {
    const waited = rowOf({ ...bound, reserved, seen: "IN_QUEUE", seenAt: noon + dayMs });
    expect(assumedCharge(waited, false)).toEqual({ microUsd: reserved, assumed: true });
  });
});

describe("text that was handed out", () => {
  const reserved = 1_000_000;
  const handed = { model: text, kind: "text", inputBytes: 40_000, pieces: 10, textBytes: 40_000 } as const;

  it("is paid by its bytes or its pieces, at most the reservation", () => {
    const price = handedOutPrice(rowOf({ ...handed, reserved }));
    expect(price).toBeGreaterThan(0);
    expect(price).toBeLessThan(reserved);
    expect(handedOutPrice(rowOf({ ...handed, reserved, pieces: 10_000 }))).toBe(price);
    expect(handedOutPrice(rowOf({ ...handed, reserved, pieces: 20_000 }))).toBeGreaterThan(price);
    expect(handedOutPrice(rowOf({ ...handed, reserved: price - 1 }))).toBe(price - 1);
  });

  it("costs the reservation where the model is not paid by tokens, and nothing where there was none", () => {
    expect(handedOutPrice(rowOf({ reserved, pieces: 1 }))).toBe(reserved);
    expect(handedOutPrice(rowOf({ reserved }))).toBe(0);
  });

  it.each(["CANCELLED", "TIMED_OUT"] as const)(
    "is what a job that was %s costs, unless the upstream says it",
    (status) => {
      const job = rowOf({ ...handed, reserved });
      expect(chargeOf(job, status, null)).toEqual({ microUsd: handedOutPrice(job), assumed: true });
      expect(chargeOf(job, status, 3)).toEqual({ microUsd: 3, assumed: false });
      expect(assumedCharge(rowOf({ ...handed, ...bound, reserved }), true).microUsd).toBe(handedOutPrice(job));
    },
  );
});
