// One endpoint of the platform as its clients, its workers and its clock see it. Time passes only when a test says so.
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { call, type Settings } from "../../support/front-door.ts";
import { testSettings } from "../../support/settings.ts";

export const key = testSettings.PLATFORM_API_KEY;
/** Far enough ahead that no real alarm rings meanwhile. */
export const noon = Date.UTC(2030, 0, 1, 12);

export function setTime(now: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now });
}

export function pass(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

interface Sent {
  readonly json?: unknown;
  readonly body?: BodyInit;
  readonly key?: string;
  readonly settings?: Settings;
  readonly type?: string;
  readonly headers?: Record<string, string>;
}

/** `bare` is served by real workers alone; a model's id names an endpoint with built-in ones. */
export function endpoint(name = "bare", account = "default") {
  const queue = () => env.ENDPOINT_QUEUE.getByName(`${account}/${name}`);
  const send = (
    method: string,
    path: string,
    { json, body, key: sentKey = key, settings, type, headers }: Sent = {},
  ) => {
    const sent = json === undefined ? body : JSON.stringify(json);
    return call(method, `/platform/v2/${name}/${path}`, {
      headers: { Authorization: sentKey, ...headers, ...(type && { "Content-Type": type }) },
      ...(sent !== undefined && { body: sent }),
      settings: { ENDPOINTS: "bare", ...settings },
    });
  };
  const read = async <T = Record<string, unknown>>(method: string, path: string, sent?: Sent) =>
    (await send(method, path, sent)).json<T>();
  return {
    queue,
    send,
    read,
    get: (path: string) => read("GET", path),
    post: (path: string, json?: unknown) => read("POST", path, json === undefined ? {} : { json }),
    submit: async (request: object = { input: {} }) => (await read("POST", "run", { json: request }))["id"] as string,
    /** Never held: what is there, or nothing. */
    take: async (worker = "w1", count = 1) => {
      const jobs = await queue().take(worker, crypto.randomUUID(), count, 0);
      return "refused" in jobs ? [] : jobs.map(({ id }) => id);
    },
    done: (job: string, result: unknown = { output: "made" }, worker = "w1") =>
      send("POST", `job-done/${worker}/${job}?isStream=false`, {
        json: result,
        type: "application/x-www-form-urlencoded",
      }),
    chunk: (job: string, output: unknown, worker = "w1") =>
      send("POST", `job-stream/${worker}/${job}?isStream=true`, { json: { output } }),
    ping: (worker = "w1", ...jobs: string[]) =>
      send("GET", `ping/${worker}?${jobs.length > 0 ? `job_id=${jobs.join(",")}&` : ""}runpod_version=1`),
    ring: () => runDurableObjectAlarm(queue()),
  };
}

export type Endpoint = ReturnType<typeof endpoint>;

/** What was asked of the endpoint's storage while this ran, each statement once. */
export async function statementsOf(e: Endpoint, act: () => Promise<unknown>): Promise<string[]> {
  const asked = new Set<string>();
  await runInDurableObject(e.queue(), (_, { storage }) => {
    const prototype = Object.getPrototypeOf(storage.sql) as SqlStorage;
    const exec = prototype.exec;
    vi.spyOn(prototype, "exec").mockImplementation(function (this: SqlStorage, query, ...bindings) {
      asked.add(query);
      return exec.call(this, query, ...bindings);
    } as typeof exec);
  });
  await act();
  vi.restoreAllMocks();
  return [...asked];
}

/** Asks again until it holds. vitest's own `waitFor` would move the clock. */
export async function eventually(check: () => Promise<unknown>): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await check();
      return;
    } catch (error) {
      if (tried === 500) throw error;
      await scheduler.wait(1);
    }
  }
}
