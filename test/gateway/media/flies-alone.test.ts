// What a request gets never hangs on what another asked for beside the same input.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { gatedWorld, kept, model, Studio, type World } from "./studio.ts";

let world: World;
let land: () => void;
beforeEach(() => {
  ({ world, land } = gatedWorld());
});
afterEach(emptyStorage);

const input = { prompt: "a lighthouse", seed: 7, width: 256, height: 256 };
const run = (studio: Studio, token: string, more: object = {}) =>
  studio.ask(`/v2/${model}/run`, token, "POST", { body: { input, ...more } });
const cacheOf = async (asked: Promise<Response>) => (await asked).headers.get("X-Cache");

describe.each([
  ["the least time to live", { policy: { ttl: 10_000 } }],
  ["little time to run", { policy: { executionTimeout: 5000 } }],
  ["low priority", { policy: { lowPriority: true } }],
  ["an empty policy", { policy: {} }],
  ["a webhook", { webhook: "https://app.example.org/done" }],
  ["a member that nobody knows", { refWorker: "mine" }],
  ["a member whose name is another's in capitals", { POLICY: { ttl: 10_000 } }],
])("attack M3: a request with %s", (_, more) => {
  let studio: Studio;
  let mallory: string;
  let ada: string;
  beforeEach(async () => {
    studio = new Studio({ REUSE_SCOPE: "shared" });
    [mallory, ada] = [await studio.token("mallory"), await studio.token("ada")];
  });

  it("leads nobody", async () => {
    expect(await cacheOf(run(studio, mallory, more))).toBe("BYPASS");
    expect(await cacheOf(run(studio, ada))).toBe("MISS");
    expect(world.count("POST /run")).toBe(2);
  });

  it("joins nobody, and lets the others join as before", async () => {
    expect(await cacheOf(run(studio, ada))).toBe("MISS");
    expect(await cacheOf(run(studio, mallory, more))).toBe("BYPASS");
    expect(await cacheOf(run(studio, mallory))).toBe("JOINED");
    expect(world.count("POST /run")).toBe(2);
  });

  it("fills no cache, and is answered from none", async () => {
    land();
    await studio.ask(`/v2/${model}/runsync`, mallory, "POST", { body: { input, ...more } });
    expect(await kept("reuse/")).toEqual([]);
    expect(await cacheOf(studio.paint(ada))).toBe("MISS");
    expect(await cacheOf(run(studio, mallory, more))).toBe("BYPASS");
    expect(await cacheOf(run(studio, mallory))).toBe("HIT");
  });
});
