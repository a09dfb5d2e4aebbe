// What its owner deleted stays deleted: while it is still being written, while KV refuses, and while KV shows what was before.
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Reusable } from "../../../src/gateway/media/image-cache.ts";
import type { JobMedia } from "../../../src/gateway/media/job-media.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { kept, model, Studio, World } from "./studio.ts";

let world: World;
let studio: Studio;
let token: string;
beforeEach(async () => {
  world = new World();
  studio = new Studio();
  token = await studio.token("ada");
});
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const shared = { REUSE_SCOPE: "shared" };
const cacheOf = ({ headers }: Response) => headers.get("X-Cache");
const kv = Object.getPrototypeOf(env.IMAGES) as KVNamespace;

/** Writes under names that begin so are under way until they are let land. An object awaits nothing of a test's own. */
function holdWrites(prefix: string) {
  let [hasBegun, mayLand, hasLanded] = [false, false, false];
  const put = env.IMAGES.put.bind(env.IMAGES) as (...words: unknown[]) => Promise<void>;
  const holding = async (name: string, ...words: unknown[]) => {
    if (!name.startsWith(prefix)) return put(name, ...words);
    hasBegun = true;
    while (!mayLand) await scheduler.wait(2);
    await put(name, ...words);
    hasLanded = true;
  };
  return {
    put: holding,
    begun: () => vi.waitFor(() => expect(hasBegun).toBe(true)),
    land: async () => {
      mayLand = true;
      await vi.waitFor(() => expect(hasLanded).toBe(true));
    },
  };
}

describe("fault M6: what is written while its owner deletes it", () => {
  it.each(["media/", "reuse/"])("is gone from KV under %s", async (prefix) => {
    const { put, begun, land } = holdWrites(prefix);
    vi.spyOn(kv, "put").mockImplementation(put as KVNamespace["put"]);
    const { path } = await studio.link(token);
    await begun();
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    await land();
    await vi.waitFor(async () => expect(await kept(prefix)).toEqual([]));
    const elsewhere = new Studio();
    await expectProblem(await elsewhere.ask(path, undefined), "NOT_FOUND");
    expect(cacheOf(await elsewhere.paint(token))).toBe("MISS");
  });

  it.each(["media/", "reuse/"])("is gone from KV under %s though it could not be deleted once more", async (prefix) => {
    const { put, begun, land } = holdWrites(prefix);
    vi.spyOn(kv, "put").mockImplementation(put as KVNamespace["put"]);
    const { path } = await studio.link(token);
    await begun();
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    const refusing = vi.spyOn(kv, "delete").mockRejectedValue(new Error("busy"));
    await land();
    expect(await kept(prefix)).toHaveLength(1);
    refusing.mockRestore();
    expect(await runDurableObjectAlarm(jobOf(path))).toBe(true);
    await vi.waitFor(async () => expect(await kept(prefix)).toEqual([]));
  });

  it("is handed out to nobody where the others hear of it later than of its end", async () => {
    const names: string[] = [];
    const getByName = (name: string) => {
      names.push(name);
      return env.SHARED_REQUEST.getByName(name);
    };
    const { path } = await new Studio({ SHARED_REQUEST: { getByName } }).link(token);
    const request = env.SHARED_REQUEST.getByName(names[0] ?? "");
    await vi.waitFor(async () => expect(await kept("reuse/")).toHaveLength(1));
    const served = await request.board("a");
    if (!("entry" in served)) throw new Error(served.role);
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    await request.land("job-1", served.entry as Reusable);
    expect(await request.board("b")).toMatchObject({ role: "lead" });
    expect(await kept("reuse/")).toEqual([]);
  });
});

const jobOf = (path: string) => env.JOB_MEDIA.getByName(/images\/([0-9a-f]{32})-/.exec(path)?.[1] ?? "");

describe("fault M6: a deletion that KV refuses", () => {
  it.each(["user", "shared"])("is owed by the link's object, and made by its alarm, in the scope %s", async (scope) => {
    const at = new Studio({ REUSE_SCOPE: scope });
    const { path } = await at.link(token);
    await vi.waitFor(async () => expect(await kept("reuse/")).toHaveLength(1));
    const refusing = vi.spyOn(kv, "delete").mockRejectedValue(new Error("busy"));
    const refused = await at.ask(path, token, "DELETE");
    expect(refused.headers.get("Retry-After")).toBe("1");
    await expectProblem(refused, "UNAVAILABLE");
    refusing.mockRestore();
    expect(await runDurableObjectAlarm(jobOf(path))).toBe(true);
    await vi.waitFor(async () => expect(await kept("media/")).toEqual([]));
    expect(await kept("reuse/")).toHaveLength(scope === "shared" ? 1 : 0);
    expect(cacheOf(await new Studio({ REUSE_SCOPE: scope }).paint(token))).toBe("MISS");
  });

  it("fault: is not put off by what is written to its object after that has slept", async () => {
    const { path } = await studio.link(token);
    vi.spyOn(kv, "delete").mockRejectedValue(new Error("busy"));
    await expectProblem(await studio.ask(path, token, "DELETE"), "UNAVAILABLE");
    await evictDurableObject(jobOf(path));
    await jobOf(path).expect({
      admission: "late",
      rider: "joined",
      flight: "reuse/user/0123456789abcdef",
      ref: "job-1",
    });
    const ringsAt = await runInDurableObject(jobOf(path), (_, { storage }) => storage.getAlarm());
    expect(Number(ringsAt)).toBeLessThan(Date.now() + 60_000);
  });

  it("is heard of by the gallery first, so that whoever is told that it failed may ask again", async () => {
    const { path } = await studio.link(token);
    const away = { getByName: () => ({ removeFromGallery: () => Promise.reject(new Error("away")) }) };
    await expectProblem(await new Studio({ USER_METER: away }).ask(path, token, "DELETE"), "METER_UNAVAILABLE");
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    expect(await (await studio.ask("/images", token)).json()).toMatchObject({ images: [] });
  });
});

describe("fault M11: KV that refuses", () => {
  it.each(["put", "delete"] as const)(
    "each %s is asked half as often each time, down to once an hour",
    async (method) => {
      const { path } = await studio.link(token, { input: { seed: -1 } });
      await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
      const object = jobOf(path);
      if (method === "put") {
        await runInDurableObject(object, (_, { storage }) => {
          storage.sql.exec("UPDATE kept SET json = json_set(json, '$.written', json('false')) WHERE name = 'links'");
        });
      }
      vi.spyOn(kv, method).mockRejectedValue(new Error("full"));
      const started = Date.now();
      if (method === "delete") await expectProblem(await studio.ask(path, token, "DELETE"), "UNAVAILABLE");
      else await planOwedSince(object, started);
      const gaps: number[] = [];
      for (let at = started; gaps.length < 12; ) {
        await evictDurableObject(object);
        const now = at;
        const next = await runInDurableObject(object, async (job: JobMedia, { storage }) => {
          job.clock = () => now;
          await storage.deleteAlarm();
          await job.alarm();
          return vi.waitFor(async () => {
            const alarm = (await storage.getAlarm()) ?? 0;
            if (alarm <= now) throw new Error("not armed");
            return alarm;
          });
        });
        gaps.push(Math.round((next - at) / 10_000) * 10);
        at = next;
      }
      expect(gaps).toEqual([10, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
    },
  );
});

describe("fault M6: while KV still shows what was before", () => {
  /** As the edge does: what was read once is read again. */
  function cachedKv(prefixes: readonly string[]) {
    const read = new Map<string, Promise<unknown>>();
    const get = (name: string, how: object) => {
      if (!prefixes.some((prefix) => name.startsWith(prefix))) return env.IMAGES.get(name, how);
      const known = read.get(name) ?? env.IMAGES.get(name, how);
      read.set(name, known);
      return known;
    };
    const put = env.IMAGES.put.bind(env.IMAGES);
    return { get, put };
  }

  it("a link is gone at once where it was deleted, from answers too", async () => {
    const { path, id } = await studio.link(token);
    const at = new Studio({ IMAGES: cachedKv(["media/", "reuse/"]) });
    expect((await at.ask(path, undefined)).status).toBe(200);
    expect(cacheOf(await at.paint(token))).toBe("HIT");
    expect((await at.ask(path, token, "DELETE")).status).toBe(204);
    await expectProblem(await at.ask(path, undefined), "NOT_FOUND");
    expect(cacheOf(await at.paint(token))).toBe("MISS");
    expect((await at.ask(`/v2/${model}/status/${id}`, token)).status).toBe(200);
  });

  it("an own link to another's answer is not made once more elsewhere", async () => {
    const at = new Studio(shared);
    await at.link(token);
    const bob = await at.token("bob");
    const elsewhere = new Studio({ ...shared, IMAGES: { ...cachedKv([]), get: missing("link/") } });
    const { path } = await at.link(bob);
    expect((await at.ask(path, bob, "DELETE")).status).toBe(204);
    const again = await elsewhere.paint(bob);
    expect(cacheOf(again)).toBe("MISS");
    await expectProblem(await new Studio(shared).ask(path, undefined), "NOT_FOUND");
    const { images } = await (await at.ask("/images", bob)).json<{ images: { url: string }[] }>();
    expect(images.map(({ url }) => url)).not.toContain(expect.stringContaining(path));
  });

  it("nor is it where another isolate is just making it", async () => {
    const at = new Studio(shared);
    await at.link(token);
    const bob = await at.token("bob");
    const { path } = await at.link(bob);
    const { put, begun, land } = holdWrites("media/");
    const elsewhere = new Studio({ ...shared, IMAGES: { get: missing("link/"), put } });
    const making = elsewhere.paint(bob);
    await begun();
    expect((await at.ask(path, bob, "DELETE")).status).toBe(204);
    await land();
    await making;
    expect(await kept("media/")).toHaveLength(2);
    await runInDurableObject(jobOf(path), async (job: JobMedia) => {
      job.clock = () => Date.now() + 40_000;
      await job.alarm();
    });
    await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
    await expectProblem(await new Studio(shared).ask(path, undefined), "NOT_FOUND");
    expect(cacheOf(await new Studio(shared).paint(bob))).toBe("MISS");
  });

  /** KV that has not heard yet of anything under this prefix. */
  function missing(prefix: string) {
    return async (name: string, how: object) => (name.startsWith(prefix) ? null : env.IMAGES.get(name, how));
  }

  it("a picture costs one read of KV, and no call of an object", async () => {
    const { path } = await studio.link(token);
    await vi.waitFor(async () => expect(await kept("media/")).toHaveLength(1));
    const reads: string[] = [];
    const get = (name: string, how: object) => {
      reads.push(name);
      return env.IMAGES.get(name, how);
    };
    const JOB_MEDIA = { getByName: () => expect.unreachable("an object was asked") };
    const lone = new Studio({ IMAGES: { get }, JOB_MEDIA, SHARED_REQUEST: JOB_MEDIA });
    expect((await lone.ask(path, undefined)).status).toBe(200);
    expect(reads).toEqual([expect.stringMatching(/^media\//)]);
    expect(world.count("GET https://cdn")).toBe(1);
  });
});

/** As a first write that failed then leaves it. */
async function planOwedSince(object: DurableObjectStub<JobMedia>, since: number): Promise<void> {
  await runInDurableObject(object, (_, { storage }) => {
    storage.sql.exec("UPDATE kept SET json = json_set(json, '$.owedSince', ?) WHERE name = 'links'", since);
  });
}
