// A payer's meter through its calls: admission, idempotency, binding, settlement, lists.
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { codeOf, ending, meterOf, noon, request, stubOf } from "./admissions.ts";

const meter = () => meterOf("user:ada");
const retryOf = (admission: string, change: Partial<AdmitRequest>) =>
  request({ operation: "retry", retryOf: { admission, upstreamId: "job-1" }, ...change });
const setClock = (now: number) =>
  runInDurableObject(stubOf("user:ada"), (object) => {
    object.clock = () => now;
  });
const totals = async () =>
  (await meter().usage({ plan: "unlimited", planFrom: "token", plans: "{}", token: undefined })).totals;

beforeEach(async () => {
  vi.spyOn(console, "warn").mockReturnValue();
  await setClock(noon);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

describe("an admission", () => {
  it("reserves, is bound, and is settled once at the truth", async () => {
    const job = request();
    expect(await meter().admit(job)).toMatchObject({ admitted: true });
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 20_000 });
    await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
    expect(await meter().job(job.admission)).toMatchObject({
      upstreamId: "job-1",
      status: "IN_QUEUE",
      costMicroUsd: null,
    });
    expect(await meter().settle(ending(job.admission))).toEqual({
      admission: job.admission,
      first: true,
      chargedMicroUsd: 15_000,
      isAssumed: false,
      isOver: true,
      wantsNotice: false,
    });
    expect(await meter().settle(ending(job.admission, { costMicroUsd: 99 }))).toMatchObject({
      first: false,
      chargedMicroUsd: 15_000,
    });
    expect(await totals()).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
    expect(await meter().job(job.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 15_000 });
  });

  it.each([
    ["COMPLETED", 99_000],
    ["COMPLETED", 0],
    ["FAILED", null],
  ] as const)(
    "that ended at a known cost is charged no other by %s at %s that brings its picture",
    async (status, costMicroUsd) => {
      const job = request();
      await meter().admit(job);
      await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
      await meter().settle(ending(job.admission));
      const facts = { model: "flux", cost: 0.015, size: null, completedAt: noon, owner: "user:ada" };
      const url = "https://cdn.example.net/a.png";
      const media = [{ key: "k", media: { ...facts, url, field: "image_url", expiresAt: noon + 1000 } as const }];
      expect(await meter().settle(ending(job.admission, { status, costMicroUsd, media }))).toMatchObject({
        first: false,
        chargedMicroUsd: 15_000,
      });
      expect(await totals()).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
      expect(await meter().job(job.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 15_000 });
    },
  );

  it("that joins another's job reserves and pays nothing, whatever it was said to cost", async () => {
    const job = request({ joined: true });
    expect(await meter().admit(job)).toMatchObject({ admitted: true });
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
    await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
    expect(await meter().settle(ending(job.admission))).toMatchObject({ first: true, chargedMicroUsd: 0 });
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
  });

  it("that joins another's job takes none of its payer's places", async () => {
    const one = { plan: "one", plans: plansText({ one: [{ unit: "jobs", limit: 1 }] }) };
    expect(await meter().admit(request({ ...one, joined: true }))).toMatchObject({ admitted: true });
    expect(await meter().admit(request(one))).toMatchObject({ admitted: true });
    expect(codeOf(await meter().admit(request(one)))).toBe("TOO_MANY_JOBS");
  });

  it("that is asked for twice counts once", async () => {
    const job = request({ plan: "one", plans: plansText({ one: [{ unit: "requests", limit: 1, per: "day" }] }) });
    expect(await meter().admit(job)).toMatchObject({ admitted: true });
    expect(await meter().admit(job)).toMatchObject({ admitted: true });
    expect(codeOf(await meter().admit({ ...job, admission: request().admission }))).toBe("RATE_LIMITED");
  });

  it("that is released leaves nothing but the request", async () => {
    const job = request({ idempotency: { key: "k", fingerprint: "f" } });
    await meter().admit(job);
    await meter().release(job.admission);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
    expect(await meter().job(job.admission)).toBeUndefined();
    expect(await meter().settle(ending(job.admission))).toMatchObject({ first: false, chargedMicroUsd: 0 });
    const again = request({ idempotency: { key: "k", fingerprint: "f" } });
    expect(await meter().admit(again)).toMatchObject({ admitted: true });
  });

  it("that was settled is not released", async () => {
    const job = request();
    await meter().admit(job);
    await meter().settle(ending(job.admission));
    await meter().release(job.admission);
    expect(await totals()).toMatchObject({ known: 15_000 });
  });

  it("that was assumed meanwhile, and is released, owes nothing", async () => {
    const job = request();
    await meter().admit(job);
    await setClock(noon + 10 * 60_000);
    await meter().admit(request({ reserveMicroUsd: 0 }));
    expect(await totals()).toEqual({ known: 0, assumed: 20_000, reserved: 0 });
    await meter().release(job.admission);
    expect(await totals()).toEqual({ known: 0, assumed: 0, reserved: 0 });
    expect(await meter().job(job.admission)).toBeUndefined();
  });

  it("of a revoked user is refused at once, of one who came back later not", async () => {
    await meter().revoke("user:ada", noon);
    expect(codeOf(await meter().admit(request()))).toBe("TOKEN_REVOKED");
    const later = { issuedAt: noon + 5001, tokenId: "t" };
    expect(await meter().admit(request({ bearer: later }))).toMatchObject({ admitted: true });
    await meter().revoke("user:ada", noon, { id: "t", expiresAt: noon + 1000 });
    expect(codeOf(await meter().admit(request({ bearer: later })))).toBe("TOKEN_REVOKED");
  });
});

describe("an idempotency key", () => {
  const keyed = (fingerprint = "f", key = "k") => request({ idempotency: { key, fingerprint } });

  it("gives the same job once it is bound, and says so before", async () => {
    const job = keyed();
    await meter().admit(job);
    expect(codeOf(await meter().admit(keyed()))).toBe("IN_PROGRESS");
    await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
    const replay = { admitted: false, replay: { admission: job.admission, upstreamId: "job-1" } };
    expect(await meter().admit(keyed())).toEqual(replay);
    await meter().settle(ending(job.admission));
    expect(await meter().admit(keyed())).toEqual(replay);
    expect((await totals()).known).toBe(15_000);
  });

  it("refuses another request, and is its owner's alone", async () => {
    await meter().admit(keyed());
    expect(codeOf(await meter().admit(keyed("g")))).toBe("IDEMPOTENCY_MISMATCH");
    expect(await meter().admit({ ...keyed("g"), owner: "user:bob" })).toMatchObject({ admitted: true });
  });

  it("is remembered for a day", async () => {
    const job = keyed();
    await meter().admit(job);
    await meter().bind([{ admission: job.admission, upstreamId: "job-1" }]);
    await setClock(noon + 86_399_999);
    expect(await meter().admit(keyed())).toHaveProperty("replay");
    await setClock(noon + 86_400_000);
    expect(await meter().admit(keyed())).toMatchObject({ admitted: true });
  });

  it("is bound by what settles first", async () => {
    const job = keyed();
    await meter().admit(job);
    await meter().settle(ending(job.admission, { upstreamId: "job-1" }));
    expect(await meter().admit(keyed())).toMatchObject({ replay: { upstreamId: "job-1" } });
  });
});

describe("lists", () => {
  it("are the owner's, newest first, of the open ones those last that were seen running", async () => {
    const jobs = [];
    for (let at = 0; at < 5; at++) {
      await setClock(noon + at);
      const job = request({ admission: `00000000${at}`, owner: at === 3 ? "user:bob" : "user:ada" });
      await meter().admit(job);
      jobs.push(job.admission);
    }
    await meter().settle(ending(jobs[1] ?? ""));
    const open = await meter().openJobs("user:ada", "flux", 2);
    expect(open.map(({ admission }) => admission)).toEqual([jobs[4], jobs[2]]);
    await meter().settle(ending(jobs[4] ?? "", { status: "IN_PROGRESS", costMicroUsd: null }));
    const waiting = await meter().openJobs("user:ada", "flux", 2);
    expect(waiting.map(({ admission }) => admission)).toEqual([jobs[2], jobs[0]]);
    const page = await meter().jobs("user:ada", undefined, 1, 2);
    expect(page.total).toBe(4);
    expect(page.jobs.map(({ admission }) => admission)).toEqual([jobs[2], jobs[1]]);
    expect(await meter().jobs("user:ada", "other", 0, 10)).toEqual({ jobs: [], total: 0 });
  });
});

describe("a retry", () => {
  it("is settled by the upstream's id under the first handle", async () => {
    const [first, second] = [request({ admission: "1" }), retryOf("1", { admission: "2" })];
    await meter().admit(first);
    await meter().bind([{ admission: first.admission, upstreamId: "job-1" }]);
    await meter().settle(ending(first.admission, { upstreamId: "job-1", status: "FAILED", costMicroUsd: null }));
    await meter().admit(second);
    await meter().bind([{ admission: second.admission, upstreamId: "job-1" }]);
    await meter().settle(ending(first.admission, { upstreamId: "job-1" }));
    expect(await meter().job(second.admission)).toMatchObject({ status: "COMPLETED", costMicroUsd: 15_000 });
    expect(await totals()).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
  });

  it("is not ended by a failure that was asked for before it was accepted", async () => {
    const [first, second] = [request({ admission: "1" }), retryOf("1", { admission: "2" })];
    const failed = ending(first.admission, { upstreamId: "job-1", status: "FAILED", costMicroUsd: null });
    await meter().admit(first);
    await meter().bind([{ admission: first.admission, upstreamId: "job-1" }]);
    await meter().settle(failed);
    await meter().admit(second);
    await setClock(noon + 500);
    await meter().bind([{ admission: second.admission, upstreamId: "job-1" }]);
    await meter().settle(failed);
    expect(await meter().job(second.admission)).toMatchObject({ endedAt: null });
    await meter().settle(ending(first.admission, { upstreamId: "job-1", askedAt: noon + 500 }));
    expect(await totals()).toEqual({ known: 15_000, assumed: 0, reserved: 0 });
  });
});
