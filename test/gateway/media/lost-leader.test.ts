// A leader that never comes, and an object that has too many to answer: nobody waits for long, and nobody pays for another.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SharedRequest } from "../../../src/gateway/media/shared-request.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import {
  charged,
  type Detours,
  detoured,
  gatedWorld,
  hang,
  model,
  Studio,
  type World,
  whileTimePasses,
} from "./studio.ts";

const takeoffMs = 20_000;

let world: World;
let land: () => void;
let token: string;
beforeEach(async () => {
  ({ world, land } = gatedWorld());
  token = await new Studio().token("ada");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await emptyStorage();
});

const studio = (detours: Detours = {}) => new Studio(detoured("SHARED_REQUEST", detours));
const run = (at: Studio, more: object = {}) => at.paint(token, { operation: "run", ...more });
const cacheOf = ({ headers }: Response) => headers.get("X-Cache");

/** From here on the object takes it that so much time has passed. */
async function later(object: string, ms: number): Promise<void> {
  await runInDurableObject(env.SHARED_REQUEST.getByName(object), (request: SharedRequest) => {
    request.clock = () => Date.now() + ms;
  });
}

/** Those who wait find that the leader has had its time. */
const patience: Detours = {
  awaitRef: async (call, object) => {
    await later(object, takeoffMs);
    return call();
  },
};

describe("fault M7: a leader that died before it took off", () => {
  it("is replaced by one of those who wait, and by one alone; the others follow that one", async () => {
    let died: Promise<unknown> | undefined;
    const waiting = studio({
      ...patience,
      board: async (call, object) => {
        died ??= env.SHARED_REQUEST.getByName(object).board("died");
        await died;
        return call();
      },
    });
    const headers = { "Idempotency-Key": "once" };
    const asked = [run(waiting, { headers }), ...Array.from({ length: 9 }, () => run(waiting))];
    const responses = await Promise.all(asked);
    expect(responses.map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect(responses.map(cacheOf).sort()).toEqual([...new Array(9).fill("JOINED"), "MISS"]);
    expect(world.count("POST /run")).toBe(1);

    land();
    for (const response of responses) {
      const { id } = await response.json<{ id: string }>();
      const job = await (await waiting.ask(`/v2/${model}/status/${id}`, token)).json<{ status: string }>();
      expect(job.status).toBe("COMPLETED");
    }
    expect(await charged("ada")).toEqual({ microUsd: 2500, jobs: 10, open: 0 });
  });

  it("is held for by nobody longer than a leader may take", async () => {
    const request = env.SHARED_REQUEST.getByName("reuse/shared/0123456789abcdef");
    await request.board("died");
    await later("reuse/shared/0123456789abcdef", takeoffMs - 50);
    expect(await request.awaitRef("died", 60_000)).toBe("none");
    expect(await request.board("a")).toEqual({ role: "lead" });
    expect(await request.board("b")).toEqual({ role: "join", leader: "a" });
  });

  it("whose place others lost as well starts no job for each of those who wait", async () => {
    let leaders = 0;
    const starting = Date.now();
    const waiting = studio({
      awaitRef: async () => {
        vi.useFakeTimers({ toFake: ["Date"], now: starting + ++leaders * takeoffMs });
        return "none";
      },
      board: async () => ({ role: "join", leader: `died ${leaders}` }),
    });
    const response = await run(waiting).finally(() => vi.useRealTimers());
    await expectProblem(response, "UPSTREAM_TIMEOUT");
    expect(world.count("POST /run")).toBe(0);
    expect(await charged("ada")).toMatchObject({ microUsd: 0, jobs: 0 });
  });
});

describe("fault M7: a leader that was only slow", () => {
  it("goes on alone: it pays for its job, who leads instead pays for that one's, and who joins pays nothing", async () => {
    const replaced = Promise.withResolvers<void>();
    const slow = studio({
      takeOff: async (call) => {
        await replaced.promise;
        return call();
      },
    });
    const late = run(slow);
    await vi.waitFor(() => expect(world.count("POST /run")).toBe(1));
    const instead = await run(studio(patience));
    const joined = await run(studio());
    replaced.resolve();
    const responses = [await late, instead, joined, await run(studio())];
    expect(responses.map(cacheOf)).toEqual(["MISS", "MISS", "JOINED", "JOINED"]);
    const ids = await Promise.all(responses.map(async (response) => (await response.json<{ id: string }>()).id));
    expect(ids.map((id) => id.split(".")[0])).toEqual(["job-1", "job-2", "job-2", "job-2"]);

    for (const id of ids) {
      const job = await (await new Studio().ask(`/v2/${model}/status/${id}`, token)).json<{ status: string }>();
      expect(job.status).toBe("COMPLETED");
    }
    expect(await charged("ada")).toEqual({ microUsd: 5000, jobs: 4, open: 0 });
  });

  it("and was replaced ends its own job by a cancel, not the others'", async () => {
    world.submitted = () => ({ status: "IN_QUEUE" });
    const slow = await run(studio({ takeOff: () => Promise.reject(new Error("lost")) }));
    await run(studio(patience));
    const { id } = await slow.json<{ id: string }>();
    await new Studio().ask(`/v2/${model}/cancel/${id}`, token, "POST");
    expect(world.count("/cancel")).toBe(1);
    expect(cacheOf(await run(studio()))).toBe("JOINED");
  });
});

describe("a leader that waits for a slow upstream", () => {
  it("says that it is there, so that nobody starts the same job beside it", async () => {
    const name = "reuse/shared/0123456789abcdef";
    const request = env.SHARED_REQUEST.getByName(name);
    await request.board("slow");
    for (const seconds of [8, 16, 24, 32]) {
      await later(name, seconds * 1000);
      await request.stay("slow");
    }
    expect(await request.board("b")).toEqual({ role: "join", leader: "slow" });
    expect(await request.awaitRef("slow", 0)).toBe("waiting");
    await later(name, 32_000 + takeoffMs);
    expect(await request.awaitRef("slow", 0)).toBe("none");
    expect(await request.board("c")).toEqual({ role: "lead" });
  });

  it("does so by itself for as long as it waits", async () => {
    const { setInterval } = globalThis;
    const everyMs: unknown[] = [];
    const hurried = (act: () => void, ms?: number) => {
      everyMs.push(ms);
      return setInterval(act, 1);
    };
    vi.spyOn(globalThis, "setInterval").mockImplementation(hurried as typeof setInterval);
    const [heard, stays] = [Promise.withResolvers<void>(), vi.fn()];
    const slow = studio({
      stay: async (call) => {
        stays();
        await call();
        heard.resolve();
      },
      takeOff: async (call) => {
        await heard.promise;
        return call();
      },
    });
    expect(cacheOf(await run(slow))).toBe("MISS");
    const calls = stays.mock.calls.length;
    await scheduler.wait(20);
    expect([everyMs.length, stays.mock.calls.length]).toEqual([1, calls]);
    expect(Number(everyMs[0])).toBeLessThan(takeoffMs / 2);
  });
});

describe("fault M7: a lost call of a leader is repeated", () => {
  /** The first call does not come, or its answer does not. */
  const losing = (what: string) => {
    let calls = 0;
    return async (call: () => Promise<unknown>) => {
      if (++calls > 1) return call();
      if (what === "the answer") await call();
      throw new Error("lost");
    };
  };

  it.each(["the call", "the answer"])("when it boarded: %s", async (what) => {
    expect(cacheOf(await run(studio({ board: losing(what) })))).toBe("MISS");
    expect(cacheOf(await run(studio()))).toBe("JOINED");
  });

  it.each(["the call", "the answer"])("when it took off: %s", async (what) => {
    expect(cacheOf(await run(studio({ takeOff: losing(what) })))).toBe("MISS");
    expect(cacheOf(await run(studio()))).toBe("JOINED");
    expect(world.count("POST /run")).toBe(1);
  });

  it.each(["the call", "the answer"])("when it failed: %s", async (what) => {
    world.refuse = Response.json({ error: "no such size" }, { status: 400 });
    const boarded = Promise.withResolvers<void>();
    const lost = losing(what);
    const leader = run(
      studio({
        ground: async (call) => {
          await boarded.promise;
          return lost(call);
        },
      }),
    );
    await vi.waitFor(() => expect(world.count("POST /run")).toBe(1));
    const follower = run(
      studio({
        awaitRef: async (call) => {
          boarded.resolve();
          return call();
        },
      }),
    );
    await expectProblem(await leader, "UPSTREAM_INVALID");
    await expectProblem(await follower, "UPSTREAM_INVALID");
    expect(world.count("POST /run")).toBe(1);
  });
});

describe("fault M14: where the object says that it is overloaded", () => {
  const overloaded = () =>
    Promise.reject(Object.assign(new Error("Durable Object is overloaded."), { overloaded: true, retryable: false }));

  it("nothing is started, and everybody is told when to come again", async () => {
    const busy = studio({ board: overloaded });
    for (const response of await Promise.all(Array.from({ length: 20 }, () => run(busy)))) {
      expect(response.headers.get("Retry-After")).toBe("5");
      await expectProblem(response, "UNAVAILABLE");
    }
    expect(world.count("POST /run")).toBe(0);
    expect(await charged("ada")).toEqual({ microUsd: 0, jobs: 0, open: 0 });
  });

  it("who waits there for a leader is told so too, and pays nothing", async () => {
    await run(studio());
    const response = await run(studio({ awaitRef: overloaded }));
    expect(response.headers.get("Retry-After")).toBe("5");
    await expectProblem(response, "UNAVAILABLE");
    expect(world.count("POST /run")).toBe(1);
    expect((await charged("ada")).jobs).toBe(1);
  });

  it.each([
    ["slow", hang],
    ["away", () => Promise.reject(new Error("Network connection lost."))],
  ])("fault: where it is %s, one goes alone and not everybody", async (_what, board) => {
    const at = studio({ board });
    const responses = await whileTimePasses(() => Promise.all(Array.from({ length: 20 }, () => run(at))));
    const [alone, ...others] = responses.sort((one, other) => one.status - other.status);
    expect([alone?.status, alone && cacheOf(alone)]).toEqual([200, "MISS"]);
    for (const response of others) {
      expect(response.headers.get("Retry-After")).toBe("5");
      await expectProblem(response, "UNAVAILABLE");
    }
    expect(world.count("POST /run")).toBe(1);
    expect((await charged("ada")).jobs).toBe(1);
  });

  it("and only where it cannot be reached does a request go alone", async () => {
    const away = studio({ board: () => Promise.reject(new Error("Network connection lost.")) });
    expect(cacheOf(await run(away))).toBe("MISS");
    expect(world.count("POST /run")).toBe(1);
  });
});

it("who could not be answered when it boarded, and went alone, keeps nobody waiting", async () => {
  const lost = studio({
    board: async (call) => {
      await call();
      throw new Error("Network connection lost.");
    },
  });
  const patient = studio();
  expect(cacheOf(await run(lost))).toBe("MISS");
  expect(cacheOf(await run(patient))).toBe("MISS");
  expect(cacheOf(await run(patient))).toBe("JOINED");
});
