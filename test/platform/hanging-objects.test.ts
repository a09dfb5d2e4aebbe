// An object that never answers holds up no other one, nor a client: each call of it ends in time.
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answersWithinMs } from "../../src/durable/remote.ts";
import { submissionOf } from "../../src/platform/job-body.ts";
import { RemoteObjects, type RemoteObjectsDeps } from "../../src/platform/management/remote-objects.ts";
import * as callers from "../support/callers.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { testSettings } from "../support/settings.ts";

const silent = new Proxy({}, { get: () => () => new Promise<never>(() => {}) });
const model = "qwen3-32b-awq";
const objects = { ACCOUNT: { getByName: () => silent }, ENDPOINT_QUEUE: { getByName: () => silent } };

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** What came of it within half a minute. */
async function inTime<T>(work: Promise<T>): Promise<T | "no end"> {
  let ended: T | "no end" = "no end";
  let fault: unknown;
  const watched = work.then(
    (value) => (ended = value),
    (error: unknown) => (fault = error),
  );
  for (let second = 0; second < 30; second++) {
    await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(1000);
  }
  await Promise.race([watched, new Promise((resolve) => setImmediate(resolve))]);
  if (fault !== undefined) throw fault;
  return ended;
}

describe("attack: an object that never answers", () => {
  it.each(["v1/templates", "v1/templates/abc?includePublicTemplates=true", "v2/abcdefghij1234/health"])(
    "is 503 of %s",
    async (path) => {
      vi.spyOn(console, "warn").mockReturnValue();
      const key = testSettings.PLATFORM_API_KEY;
      const answer = await inTime(callers.send(callers.isolate(objects), "GET", `/platform/${path}`, { key }));
      expect(answer === "no end" ? answer : answer.status).toBe(503);
    },
  );

  it.each([
    ["GET", "health", 503],
    ["GET", "metrics", 503],
    ["GET", "status/abc", 503],
    ["GET", "requests", 503],
    ["GET", "ping/w1", 503],
    ["POST", "cancel/abc", 503],
    ["POST", "purge-queue", 503],
    ["POST", "job-done/w1/abc", 503],
    ["POST", "job-stream/w1/abc", 503],
    ["POST", "run", 504],
    ["POST", "runsync", 504],
    ["POST", "retry/abc", 504],
    ["POST", "openai/v1/chat/completions", 504],
  ])("ends %s %s of a public model, which is asked of the queue once", async (method, path, status) => {
    vi.spyOn(console, "warn").mockReturnValue();
    const getByName = vi.fn(() => silent);
    const within = callers.isolate({ ENDPOINT_QUEUE: { getByName } });
    const key = testSettings.PLATFORM_API_KEY;
    const body = method === "POST" ? { input: {}, output: "said", messages: [] } : undefined;
    const answer = await inTime(callers.send(within, method, `/platform/v2/${model}/${path}`, { key, body }));
    if (answer === "no end") throw new Error("it hangs");
    expect(answer.status).toBe(status);
    expect(await answer.text()).toContain(status === 504 ? "may have been started" : "may have been done");
    expect(answer.headers.has("Retry-After")).toBe(status === 503);
    expect(getByName).toHaveBeenCalledTimes(1);
  });

  it.each(["status-sync/abc?wait=1000", "stream/abc?wait=1000", "job-take/w1", "job-stop/w1"])(
    "ends GET %s, which may be held, a moment after its time",
    async (path) => {
      vi.spyOn(console, "warn").mockReturnValue();
      const within = callers.isolate({ ENDPOINT_QUEUE: objects.ENDPOINT_QUEUE });
      const key = testSettings.PLATFORM_API_KEY;
      const answer = callers.send(within, "GET", `/platform/v2/${model}/${path}`, { key });
      let ended = await inTime(answer);
      for (let waits = 0; waits < 3 && ended === "no end"; waits++) ended = await inTime(answer);
      expect(ended === "no end" ? ended : ended.status).toBe(503);
    },
  );

  it.each([
    ["runsync", { input: {} }],
    ["openai/v1/chat/completions", { messages: [] }],
    ["openai/v1/chat/completions", { messages: [], stream: true }],
  ])("is 504 of POST %s where it took the job: 503 would say that there is none", async (path, body) => {
    vi.spyOn(console, "warn").mockReturnValue();
    const overloaded = () => Promise.reject(Object.assign(new Error("overloaded"), { overloaded: true }));
    const queue = {
      submit: async () => ({ id: "abc" }),
      wait: overloaded,
      stream: overloaded,
      cancel: async () => ({}),
    };
    const within = callers.isolate({ ENDPOINT_QUEUE: { getByName: () => queue } });
    const key = testSettings.PLATFORM_API_KEY;
    const answer = await callers.send(within, "POST", `/platform/v2/${model}/${path}`, { key, body });
    expect(answer.status).toBe(504);
    expect(await answer.text()).toContain("was started");
  });

  it("holds up no task of an account", async () => {
    const unknown = { find: () => undefined, known: () => undefined };
    const endpoints = { settings: () => ({}) };
    const ledger = { book: () => {} };
    const deps = { account: "north", templates: unknown, endpoints, ledger } as unknown as RemoteObjectsDeps;
    const remote = new RemoteObjects({ ...env, ...objects } as unknown as Env, deps);
    for (const kind of ["publish", "configure", "wipe"] as const) {
      await expect(inTime(remote.perform({ kind, id: "abc", revision: 1 }))).rejects.toThrow("took too long");
    }
    await expect(inTime(remote.publicTemplate("abc"))).rejects.toThrow("took too long");
  });

  // Time passes only where a test says so: a ring that waits for the other object does not end.
  it("holds up no alarm of a queue, which does what is due meanwhile and tells it again", async () => {
    await runInDurableObject(env.ENDPOINT_QUEUE.getByName("default/bare"), async (queue, { storage }) => {
      const tellAt = () => storage.sql.exec<{ tellAt: number }>("SELECT tellAt FROM executed").one().tellAt;
      storage.sql.exec("INSERT INTO executed VALUES (1, 1, 'w', 1, 1)");
      Object.assign(queue, { env: { ...env, ...objects } });
      await queue.alarm();
      expect(tellAt()).toBe(1);
      expect(await storage.getAlarm()).toBeGreaterThan(Date.now());
      const submission = { ...submissionOf({ input: {} }, { sync: false, waitMs: 0, origin: "" }), ttlMs: 1 };
      await queue.submit(submission);
      queue.clock = () => Date.now() + 1000;
      await queue.alarm();
      expect(storage.sql.exec("SELECT 1 FROM jobs").toArray()).toEqual([]);
      await vi.advanceTimersByTimeAsync(answersWithinMs.asked);
      expect(tellAt()).toBeGreaterThan(1);
    });
  });

  it("holds up no alarm of an account, which tries the task again", async () => {
    const warned = vi.spyOn(console, "warn").mockReturnValue();
    await runInDurableObject(env.ACCOUNT.getByName("north"), async (account, { storage }) => {
      storage.sql.exec("INSERT INTO duties VALUES ('publish', 'abc', 1, 1)");
      const spy = vi.spyOn(Object.getPrototypeOf(env.ACCOUNT), "getByName").mockReturnValue(silent);
      await account.alarm();
      expect(spy).toHaveBeenCalledOnce();
      const { dueAt } = storage.sql.exec<{ dueAt: number }>("SELECT dueAt FROM duties").one();
      expect(dueAt).toBeGreaterThan(Date.now());
      expect(await storage.getAlarm()).toBe(dueAt);
      await vi.advanceTimersByTimeAsync(answersWithinMs.asked);
      expect(warned).toHaveBeenCalledWith(expect.stringContaining("publish"));
    });
  });
});
