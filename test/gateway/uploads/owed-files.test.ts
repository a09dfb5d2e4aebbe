// What is owed after a lost call: files that nobody counts are removed, and a visitor's network hears of what its address did.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Network } from "../../../src/gateway/quota/network.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { counted, filesInBucket, inMeter, jpeg, Uploader } from "./uploader.ts";

let user: Uploader;
let token: string;
beforeEach(async () => {
  user = new Uploader();
  token = await user.token("ada", counted);
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await emptyStorage();
});

const ring = (payer: string) => runDurableObjectAlarm(env.USER_METER.getByName(payer));

describe("a file that nothing settled", () => {
  it("is removed once its time is over, and what it reserved is free", async () => {
    const announced = await user.announced(token);
    const lost = await inMeter("user:ada", (meter) => {
      return vi.spyOn(Object.getPrototypeOf(meter), "keepUpload").mockImplementation(() => {
        throw new Error("lost");
      });
    });
    await expectProblem(await user.put(announced, jpeg(1000)), "METER_UNAVAILABLE");
    lost.mockRestore();
    expect(await filesInBucket()).toHaveLength(1);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 16 * 60_000 });
    expect(await user.used(token)).toEqual({ "token-bytes-day": [0, 0], "token-stored": [0, 0] });
    await ring("user:ada");
    expect(await filesInBucket()).toEqual([]);
    await expectProblem(await user.put(announced, jpeg(1000)), "GONE");
  });

  it("is removed after a PUT that outlived its owner's delete", async () => {
    const announced = await user.uploaded(token);
    await user.ask("DELETE", announced.url, { token });
    // Another PUT by the same address was under way, found nothing there, and was lost.
    await env.MEDIA.put(`uploads/${announced.id}`, jpeg(1000));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 16 * 60_000 });
    await ring("user:ada");
    expect(await filesInBucket()).toEqual([]);
  });

  it("is removed too where a clock ran ahead and ended the upload while it was written, and its last call was lost", async () => {
    const announced = await user.announced(token);
    const start = Date.now();
    const store = Object.getPrototypeOf(env.MEDIA);
    const put = store.put;
    const writing = vi.spyOn(store, "put").mockImplementation(async function (this: R2Bucket, ...args) {
      vi.useFakeTimers({ toFake: ["Date"], now: start + 90 * 60_000 });
      await ring("user:ada");
      vi.setSystemTime(start + 1000);
      return put.apply(this, args);
    });
    const lost = await inMeter("user:ada", (meter) => {
      return vi.spyOn(Object.getPrototypeOf(meter), "keepUpload").mockImplementation(() => {
        throw new Error("lost");
      });
    });
    await expectProblem(await user.put(announced, jpeg(1000)), "METER_UNAVAILABLE");
    for (const spy of [writing, lost]) spy.mockRestore();
    expect(await filesInBucket()).toHaveLength(1);
    vi.setSystemTime(start + 3 * 60 * 60_000);
    await ring("user:ada");
    expect(await filesInBucket()).toEqual([]);
  });

  it("is tried again where the bucket is away, ever more seldom", async () => {
    const { id } = await user.uploaded(token, jpeg(1000), { ttlSeconds: 1800 });
    const start = Date.now() + 1_800_000;
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    const away = vi.spyOn(Object.getPrototypeOf(env.MEDIA), "delete").mockRejectedValue(new Error("away"));
    await ring("user:ada");
    expect(away).toHaveBeenCalledTimes(1);
    expect(await user.used(token)).toMatchObject({ "token-stored": [0, 0] });
    vi.setSystemTime(start + 9_000);
    await ring("user:ada");
    expect(away).toHaveBeenCalledTimes(1);
    vi.setSystemTime(start + 11_000);
    await ring("user:ada");
    expect(away).toHaveBeenCalledTimes(2);
    away.mockRestore();
    expect(await filesInBucket()).toEqual([`uploads/${id}`]);
    vi.setSystemTime(start + 60_000);
    await ring("user:ada");
    expect(await filesInBucket()).toEqual([]);
  });
});

describe("visitors of one network", () => {
  const network = "addr:2001:db8:1::/48";
  const visitor = async (address: string) => {
    const headers = { "CF-Connecting-IP": address };
    const session = await user.ask("POST", "/sessions", { headers, json: {} });
    return (await session.json<{ token: string }>()).token;
  };
  const ofNetwork = () =>
    inMeter(network, (meter) => {
      const { limits } = meter.usage({ plan: "anonymous", planFrom: "session", plans: "{}", token: undefined });
      const used = limits.filter(({ unit }) => unit === "bytes" || unit === "stored");
      expect(meter.audit()).toEqual([]);
      return Object.fromEntries(used.map((limit) => [limit.name, [limit.used, limit.reserved]]));
    });

  it("share ten times the limits of an address", async () => {
    const most = 60_000_000;
    let admitted = 0;
    for (let n = 1; n <= 18; n++) {
      const answer = await user.announce(await visitor(`2001:db8:1:${n}::1`), { bytes: most });
      if (answer.status === 200) admitted += 1;
      else await expectProblem(answer, "QUOTA_EXCEEDED");
    }
    expect(admitted).toBe(16);
    expect(await ofNetwork()).toEqual({ "bytes-day": [16 * most, 16 * most], stored: [16 * most, 16 * most] });
  });

  it("are counted together by what became of each upload", async () => {
    const one = await visitor("2001:db8:1:1::1");
    const address = "addr:2001:db8:1:1::/64";
    const [kept, refused] = [await user.announced(one), await user.announced(one)];
    await user.put(kept, jpeg(1000));
    await user.put(refused, new Uint8Array(1000));
    await ring(address);
    await vi.waitFor(async () => expect(await ofNetwork()).toEqual({ "bytes-day": [1000, 0], stored: [1000, 0] }));
    await user.ask("DELETE", kept.url, { token: one });
    await ring(address);
    await vi.waitFor(async () => expect(await ofNetwork()).toEqual({ "bytes-day": [1000, 0], stored: [0, 0] }));
  });

  it("are counted for what they put after their link has ended", async () => {
    const begunAt = Date.now();
    const one = await visitor("2001:db8:1:1::1");
    const announced = await user.announced(one, { bytes: 1000, ttlSeconds: 1 });
    const bucket = Object.getPrototypeOf(env.MEDIA) as R2Bucket;
    const { put } = bucket;
    vi.spyOn(bucket, "put").mockImplementation(async function (this: R2Bucket, ...written) {
      vi.useFakeTimers({ toFake: ["Date"], now: begunAt + 5000 });
      await ring(network);
      return put.apply(this, written as Parameters<typeof put>);
    } as typeof put);
    expect((await user.put(announced, jpeg(1000))).status).toBe(201);
    await ring("addr:2001:db8:1:1::/64");
    await vi.waitFor(async () => expect(await ofNetwork()).toEqual({ "bytes-day": [1000, 0], stored: [0, 0] }));
  });

  it("hold nothing by a reservation that comes after its end", async () => {
    const late: (() => Promise<unknown>)[] = [];
    const { reserveUpload } = Network.prototype;
    vi.spyOn(Network.prototype, "reserveUpload").mockImplementation(function (this: Network, ...asked) {
      late.push(() => reserveUpload.apply(this, asked));
      return Promise.reject(new Error("no answer in time"));
    });
    const answer = await user.announce(await visitor("2001:db8:1:1::1"), {});
    await expectProblem(answer, "METER_UNAVAILABLE");
    const address = "addr:2001:db8:1:1::/64";
    await ring(address);
    await inMeter(address, () => Promise.all(late.map((reserve) => reserve())));
    expect(late).toHaveLength(1);
    expect(await ofNetwork()).toEqual({ "bytes-day": [0, 0], stored: [0, 0] });
  });
});
