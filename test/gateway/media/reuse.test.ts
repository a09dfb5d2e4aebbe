// The same question has the same answer: without money, without the meter, without the model; for whom it may.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { charged, kept, model, origin, painted, Studio, World } from "./studio.ts";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

type Job = { id: string; status: string; output?: { image_url: string; expires_at: string; cost: number } };

/** Whoever asks the meter fails the test. */
const noMeter = { USER_METER: new Proxy({}, { get: () => () => expect.unreachable("the meter was asked") }) };

describe("a hit", () => {
  it("costs no money, no call of the meter and none of the model", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    const first = await studio.paint(token);
    expect(first.headers.get("X-Cache")).toBe("MISS");
    expect(first.headers.get("X-Cost")).toBe("0.0025");
    const { output } = await first.json<Job>();
    const [before, calls] = [await charged("ada"), world.calls.length];

    const again = await new Studio(noMeter).paint(token);
    expect(again.headers.get("X-Cache")).toBe("HIT");
    expect(again.headers.get("X-Cost")).toBe("0");
    expect(again.headers.get("Age")).toMatch(/^\d+$/);
    expect(await again.json<Job>()).toMatchObject({ status: "COMPLETED", output });
    expect(world.calls.length).toBe(calls);
    expect(await charged("ada")).toEqual(before);
    expect(before).toEqual({ microUsd: 2500, jobs: 1, open: 0 });
  });

  it("on /run answers IN_QUEUE, and its own handle's first status COMPLETED, from any isolate", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    const { output } = await (await studio.paint(token)).json<Job>();
    const queued = await (await studio.paint(token, { operation: "run" })).json<Job>();
    expect(queued).toEqual({ id: expect.stringMatching(/^cached-/), status: "IN_QUEUE" });
    const calls = world.calls.length;
    const path = `/v2/${model}/status/${queued.id}`;
    const job = await (await new Studio(noMeter).ask(path, token)).json<Job>();
    expect(job).toMatchObject({ id: queued.id, status: "COMPLETED", output });
    expect(world.calls.length).toBe(calls);
    await expectProblem(await studio.ask(path, await studio.token("bob")), "JOB_NOT_FOUND");
    expect(await (await studio.ask(path.replace("status", "stream"), token)).json()).toEqual({
      status: "COMPLETED",
      stream: [],
    });
    const events = await (await studio.ask(path.replace("status", "events"), token)).text();
    expect(events).toContain("event: done");
    await expectProblem(await studio.ask(path.replace("status", "retry"), token, "POST"), "NOT_RETRYABLE");
    const cancelled = await studio.ask(path.replace("status", "cancel"), token, "POST");
    expect(await cancelled.json()).toEqual({ id: queued.id, status: "COMPLETED" });
  });

  it("is held back by the flood shield alone", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    const flooded = new Studio({ FLOOD: { limit: async () => ({ success: false }) } });
    await expectProblem(await flooded.paint(token), "RATE_LIMITED");
    await expectProblem(await flooded.ask("/images", token), "RATE_LIMITED");
    const broken = new Studio({ FLOOD: { limit: () => Promise.reject(new Error("gone")) } });
    expect((await broken.paint(token)).headers.get("X-Cache")).toBe("HIT");
  });

  it("reads KV once in half a minute, and sees within a minute what another isolate deleted", async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    const token = await new Studio().token("ada");
    const { path } = await new Studio().link(token);
    const reads: { name: string; cacheTtl: number }[] = [];
    const get = (name: string, how: { type: "json"; cacheTtl: number }) => {
      if (name.startsWith("reuse/")) reads.push({ name, cacheTtl: how.cacheTtl });
      return env.IMAGES.get(name, how);
    };
    const studio = new Studio({ IMAGES: { get } });
    const cacheAt = async (ms: number) => {
      vi.setSystemTime(start + ms);
      return (await studio.paint(token)).headers.get("X-Cache");
    };
    expect([await cacheAt(0), await cacheAt(29_999), reads.length]).toEqual(["HIT", "HIT", 1]);
    expect([await cacheAt(30_000), reads.length]).toEqual(["HIT", 2]);
    expect(reads.every(({ cacheTtl }) => cacheTtl === 30)).toBe(true);
    expect((await new Studio().ask(path, token, "DELETE")).status).toBe(204);
    expect([await cacheAt(60_000), reads.length]).toEqual(["MISS", 3]);
  });

  it("is none any more once its link was deleted here", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    const { path } = await studio.link(token);
    expect((await studio.paint(token)).headers.get("X-Cache")).toBe("HIT");
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    expect((await studio.paint(token)).headers.get("X-Cache")).toBe("MISS");
  });

  it("writes KV twice a new image that may be reused, once another, and never for a hit", async () => {
    const puts = vi.spyOn(Object.getPrototypeOf(env.IMAGES), "put");
    const ofLinks = () => puts.mock.calls.filter(([key]) => !/^(result|control)\//.test(String(key)));
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    await vi.waitFor(() => expect(ofLinks()).toHaveLength(2));
    await studio.paint(token);
    await new Studio().paint(token);
    expect(ofLinks()).toHaveLength(2);
    await studio.paint(token, { input: { seed: -1 } });
    await vi.waitFor(() => expect(ofLinks()).toHaveLength(3));
    expect(await kept("media/")).toHaveLength(2);
    expect(await kept("reuse/")).toHaveLength(1);
  });
});

describe("the same request", () => {
  const same = (more: object) => ({ input: { ...more } });
  it.each([
    ["a default spelled out", same({ guidance: 7.5 })],
    [
      "another order of its keys",
      {
        input: Object.fromEntries([
          ["height", 256],
          ["seed", 7],
        ]),
      },
    ],
  ])("is %s", async (_, painting) => {
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    expect((await studio.paint(token, painting)).headers.get("X-Cache")).toBe("HIT");
  });

  it.each<[string, Parameters<Studio["paint"]>[1], string, Partial<Record<keyof Env, string>>]>([
    ["another prompt", same({ prompt: "a harbour" }), "MISS", {}],
    ["another seed", same({ seed: 8 }), "MISS", {}],
    ["an unknown key", same({ lora: "x" }), "MISS", {}],
    ["Cache-Control: no-cache", { headers: { "Cache-Control": "no-cache" } }, "BYPASS", {}],
    ["IMAGE_REUSE=never", {}, "BYPASS", { IMAGE_REUSE: "never" }],
  ])("is not %s", async (_, painting, cache, settings) => {
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    expect((await new Studio().paint(token)).headers.get("X-Cache")).toBe("HIT");
    const calls = world.calls.length;
    const response = await new Studio(settings).paint(token, painting);
    expect(response.headers.get("X-Cache")).toBe(cache);
    expect(world.calls.length).toBeGreaterThan(calls);
  });

  it("is no request without a seed, but where the operator says so", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    const unseeded = same({ seed: -1 });
    expect((await studio.paint(token, unseeded)).headers.get("X-Cache")).toBe("BYPASS");
    expect((await studio.paint(token, unseeded)).headers.get("X-Cache")).toBe("BYPASS");
    const always = new Studio({ IMAGE_REUSE: "always" });
    expect((await always.paint(token, unseeded)).headers.get("X-Cache")).toBe("MISS");
    expect((await always.paint(token, unseeded)).headers.get("X-Cache")).toBe("HIT");
  });

  it("is answered anew where a bucket or a webhook of the caller's is named", async () => {
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    const input = { prompt: "a lighthouse", seed: 7, width: 256, height: 256 };
    for (const body of [
      { input, s3Config: { bucketName: "mine" } },
      { input, webhook: "https://hooks.example.net/x" },
    ]) {
      const response = await studio.ask(`/v2/${model}/run`, token, "POST", { body });
      expect(response.headers.get("X-Cache")).toBe("BYPASS");
    }
  });
});

describe("an answer", () => {
  it.each([
    ["base64", { image_url: `data:image/png;base64,${"A".repeat(64)}`, cost: 0.0025 }],
    ["no media", { text: "nothing to see", cost: 0.0025 }],
    ["too much beside it", { image_url: "https://cdn.example.net/a.png", cost: 0.0025, mask: "x".repeat(5000) }],
  ])("of %s is not reused", async (_, output) => {
    world.submitted = () => ({ status: "COMPLETED", output });
    const studio = new Studio();
    const token = await studio.token("ada");
    expect(await (await studio.paint(token)).json<Job>()).toMatchObject({ status: "COMPLETED" });
    expect((await studio.paint(token)).headers.get("X-Cache")).toBe("MISS");
    expect(await kept("reuse/")).toEqual([]);
  });

  it("that failed is not reused", async () => {
    world.submitted = () => ({ status: "FAILED", error: "no" });
    const studio = new Studio();
    const token = await studio.token("ada");
    expect(await (await studio.paint(token)).json<Job>()).toMatchObject({ status: "FAILED" });
    expect((await studio.paint(token)).headers.get("X-Cache")).toBe("MISS");
    expect(await charged("ada")).toEqual({ microUsd: 0, jobs: 2, open: 0 });
  });

  it.each([
    ["an hour", 0, "HIT"],
    ["less than an hour", 1000, "MISS"],
  ])("with %s to live", async (_, lessMs, cache) => {
    const start = Math.floor(Date.now() / 1000) * 1000;
    vi.useFakeTimers({ toFake: ["Date"], now: start });
    const hourMs = 60 * 60 * 1000;
    const end = start + 2 * hourMs;
    world.submitted = () => painted(`https://cdn.example.net/a.png?Expires=${end / 1000}`);
    const studio = new Studio();
    const token = await studio.token("ada");
    await studio.paint(token);
    vi.setSystemTime(end - hourMs + lessMs);
    expect((await new Studio().paint(await studio.token("ada"))).headers.get("X-Cache")).toBe(cache);
  });

  it("keeps the upstream's URL where the operator wants it so", async () => {
    const studio = new Studio({ IMAGE_LINKS: "upstream" });
    const token = await studio.token("ada");
    for (const cache of ["MISS", "HIT"]) {
      const response = await studio.paint(token);
      expect(response.headers.get("X-Cache")).toBe(cache);
      const { output } = await response.json<Job>();
      expect(output).toMatchObject({ image_url: "https://cdn.example.net/a.png", expires_at: expect.any(String) });
    }
  });
});

describe("somebody else's identical prompt", () => {
  it("is answered by the model", async () => {
    const studio = new Studio();
    const ada = await studio.link(await studio.token("ada"));
    const bobs = await studio.paint(await studio.token("bob"));
    expect(bobs.headers.get("X-Cache")).toBe("MISS");
    expect((await bobs.json<Job>()).output?.image_url).not.toContain(ada.path);
    expect(world.count("/run")).toBe(2);
  });

  it("is answered from the cache where the operator shares it, under a link of its own", async () => {
    const studio = new Studio({ REUSE_SCOPE: "shared" });
    const [ada, bob] = [await studio.token("ada"), await studio.token("bob")];
    const first = await studio.link(ada);
    const response = await studio.paint(bob);
    expect(response.headers.get("X-Cache")).toBe("HIT");
    const bobs = await studio.link(bob);
    expect(bobs.path).not.toBe(first.path);
    expect((await studio.ask(bobs.path, undefined)).status).toBe(200);
    expect(await charged("bob")).toEqual({ microUsd: 0, jobs: 0, open: 0 });

    await expectProblem(await studio.ask(first.path, bob, "DELETE"), "NOT_FOUND");
    expect((await studio.ask(bobs.path, bob, "DELETE")).status).toBe(204);
    await expectProblem(await studio.ask(bobs.path, undefined), "NOT_FOUND");
    expect((await studio.ask(first.path, undefined)).status).toBe(200);
  });

  it("is in the galleries of both, each link its owner's to delete", async () => {
    const studio = new Studio({ REUSE_SCOPE: "shared" });
    const [ada, bob] = [await studio.token("ada"), await studio.token("bob")];
    const listed = async (token: string) => {
      const { images } = await (await studio.ask("/images", token)).json<{ images: { url: string; cost: number }[] }>();
      return images.map(({ url, cost }) => [url, cost]);
    };
    const adas = origin + (await studio.link(ada)).path;
    const bobs = origin + (await studio.link(bob)).path;
    expect(await listed(ada)).toEqual([[adas, 0.0025]]);
    expect(await listed(bob)).toEqual([[bobs, 0]]);

    const again = await new Studio({ REUSE_SCOPE: "shared", ...noMeter }).link(bob);
    expect(origin + again.path).toBe(bobs);
    expect(await listed(bob)).toHaveLength(1);

    expect((await studio.ask(again.path, bob, "DELETE")).status).toBe(204);
    expect([await listed(ada), await listed(bob)]).toEqual([[[adas, 0.0025]], []]);
    for (const at of [studio, new Studio({ REUSE_SCOPE: "shared" })]) {
      const anew = await at.paint(bob);
      expect(anew.headers.get("X-Cache")).not.toBe("HIT");
      const { output } = await anew.json<Job>();
      expect((await at.ask(output?.image_url.replace(origin, "") ?? "", undefined)).status).toBe(200);
    }
    expect((await listed(bob)).map(([url]) => url)).not.toContain(bobs);
    expect(await listed(ada)).toEqual([[adas, 0.0025]]);
    expect((await studio.ask(adas.replace(origin, ""), undefined)).status).toBe(200);
  });

  it("is asked anew for who asked first and deleted it, and stays for the others", async () => {
    const studio = new Studio({ REUSE_SCOPE: "shared" });
    const [ada, bob] = [await studio.token("ada"), await studio.token("bob")];
    const adas = await studio.link(ada);
    expect((await studio.link(ada)).path).toBe(adas.path);
    expect((await studio.ask(adas.path, ada, "DELETE")).status).toBe(204);
    for (const at of [studio, new Studio({ REUSE_SCOPE: "shared" })]) {
      const { path } = await at.link(ada);
      expect(path).not.toBe(adas.path);
      expect((await at.ask(path, undefined)).status).toBe(200);
      const response = await at.paint(bob);
      expect(response.headers.get("X-Cache")).toBe("HIT");
    }
  });

  it("is answered from the cache though its gallery cannot be reached", async () => {
    const shared = new Studio({ REUSE_SCOPE: "shared" });
    const token = await shared.token("bob");
    await shared.paint(await shared.token("ada"));
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const USER_METER = { getByName: () => ({ countHit: () => Promise.reject(new Error("away")) }) };
    const { path } = await new Studio({ REUSE_SCOPE: "shared", USER_METER }).link(token);
    expect((await shared.ask(path, undefined)).status).toBe(200);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("a link is not listed"));
    warn.mockRestore();
  });
});
