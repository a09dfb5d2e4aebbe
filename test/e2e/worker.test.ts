// A worker that speaks the protocol exactly as unmodified workers of the real service do.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { root } from "../../src/cli/wrangler.ts";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { type Handler, ScriptedWorker } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";

/** Each test has an endpoint of its own, so that none takes another's jobs. */
const endpoints = ["whole", "streamed", "stopped", "failing", "left", "reset", "batched"] as const;
type EndpointName = (typeof endpoints)[number];

let server: Server;
const attached: ScriptedWorker[] = [];

beforeAll(async () => {
  server = await Server.start({ settings: { ENDPOINTS: endpoints.join(",") } });
});
afterAll(async () => {
  await Promise.all(attached.map((worker) => worker.leave()));
  await server.stop();
});

function worker(endpoint: EndpointName, name: string, handle: Handler = () => ({ output: null })): ScriptedWorker {
  const environment = { endpoint, url: server.url, key: testSettings.PLATFORM_API_KEY, worker: name };
  const made = new ScriptedWorker(workerEnvironment(environment), handle);
  attached.push(made);
  return made;
}

interface Job {
  readonly id: string;
  readonly status: string;
  readonly retries?: number;
  readonly [other: string]: unknown;
}

async function call(path: string, body?: object): Promise<Job> {
  const init = body ? { method: "POST", body: JSON.stringify(body) } : {};
  return (await (await server.platform(path, init)).json()) as Job;
}

describe("an attached worker", () => {
  it("takes the request as it came, reports progress, and ends the job", async () => {
    const seen: unknown[] = [];
    worker("whole", "w1", async (job, self) => {
      seen.push(job);
      await self.progress(job.id, { percent: 50 });
      seen.push(await call(`whole/status/${job.id}`));
      return { output: { echo: job.input["text"] } };
    }).start();
    const request = { id: "mine", input: { text: "é€😀" }, s3Config: { bucketName: "b", objectPath: "x" }, extra: [1] };
    const job = await call("whole/runsync", request);
    expect(job).toMatchObject({ status: "COMPLETED", output: { echo: "é€😀" }, workerId: "w1" });
    expect(seen[0]).toEqual({ ...request, id: job.id });
    expect(seen[1]).toMatchObject({ status: "IN_PROGRESS", output: { percent: 50 } });
    expect(job.retries).toBeUndefined();
  });

  it("streams its chunks and ends with isStream", async () => {
    const self = worker("streamed", "w1");
    const { id } = await call("streamed/run", { input: {} });
    const job = await self.take();
    expect(job?.id).toBe(id);
    const chunks = ["one", { two: 2 }, ["three"]];
    for (const chunk of chunks) expect(await self.emit(id, chunk)).toBe(200);
    expect(await call(`streamed/stream/${id}`)).toMatchObject({ stream: chunks.map((output) => ({ output })) });
    expect(await self.done(id, { output: chunks }, true)).toBe(200);
    expect(await call(`streamed/stream/${id}`)).toMatchObject({ status: "COMPLETED", stream: [] });
  });

  it("is told at once what to stop, and its late result counts no more", async () => {
    const self = worker("stopped", "w1");
    const { id } = await call("stopped/run", { input: {} });
    await self.take();
    const stops = self.stops();
    expect(await call(`stopped/cancel/${id}`, {})).toMatchObject({ status: "CANCELLED" });
    expect(await stops).toEqual([id]);
    expect(await self.done(id, { output: 1 })).not.toBe(200);
    expect(await call(`stopped/status/${id}`)).toMatchObject({ status: "CANCELLED" });
  });

  it("fails a job with an error in either form", async () => {
    const traceback = JSON.stringify({ error_type: "<class 'ValueError'>", error_message: "no", error_traceback: "…" });
    const results: Record<string, object> = {
      message: { output: { partial: 1 }, error: "out of memory" },
      exception: { error: traceback },
    };
    worker("failing", "w1", ({ input }) => results[String(input["how"])]).start();
    const message = await call("failing/runsync", { input: { how: "message" } });
    expect(message).toMatchObject({ status: "FAILED", error: "out of memory", output: { partial: 1 } });
    const exception = await call("failing/runsync", { input: { how: "exception" } });
    expect(exception).toMatchObject({ status: "FAILED", error: traceback });
  });

  it("takes several jobs in one batch, first in, first out", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await call("batched/run", { input: { n } })).id);
    const answer = await server.platform("batched/job-take-batch/w1?batch_size=5&job_in_progress=0");
    const jobs = (await answer.json()) as Job[];
    expect(jobs.map(({ id }) => id)).toEqual(ids);
  });
});

describe("a worker that leaves in the middle of a held take", () => {
  it.each([
    ["left", "closed quietly", (socket: Socket) => socket.destroy()],
    ["reset", "reset", (socket: Socket) => socket.resetAndDestroy()],
  ] as const)("leaves the job to the next one, without a retry (%s: %s)", async (endpoint, _how, leave) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    const head = [`GET /platform/v2/${endpoint}/job-take/gone?gpu=none&job_in_progress=0 HTTP/1.1`, "Host: sluice"];
    socket.write([...head, `Authorization: ${testSettings.PLATFORM_API_KEY}`, "", ""].join("\r\n"));
    await heldTake(endpoint);
    const closed = once(socket, "close");
    leave(socket);
    await closed;

    const { id } = await call(`${endpoint}/run`, { input: {} });
    const next = worker(endpoint, "next");
    const taken = await eventually("the job at the next worker", 10_000, () => next.take());
    expect(taken.id).toBe(id);
    expect(await next.done(id, { output: "here" })).toBe(200);
    const job = await call(`${endpoint}/status/${id}`);
    expect(job).toMatchObject({ status: "COMPLETED", workerId: "next", output: "here" });
    expect(job.retries).toBeUndefined();
  });

  /** A take that is answered within milliseconds counts as held for nobody: its worker cannot have left. */
  async function heldTake(endpoint: EndpointName): Promise<void> {
    const since = performance.now();
    await eventually("a worker that has waited for a while", 5000, async () => {
      const { workers } = (await call(`${endpoint}/health`)) as unknown as { workers: { ready: number } };
      return workers.ready === 1 && performance.now() - since > 100;
    });
  }
});

describe("npm run worker-env", () => {
  const run = (args: string[], env: Record<string, string>) =>
    spawnSync(process.execPath, [`${root}src/cli/worker-env.ts`, ...args], { encoding: "utf8", env });

  it("prints the environment of a worker, which then reaches its endpoint", async () => {
    const args = ["whole", "--url", server.url, "--worker", "w9"];
    const { stdout, status } = run(args, { PLATFORM_API_KEY: `ops=${testSettings.PLATFORM_API_KEY}` });
    expect(status).toBe(0);
    const printed = Object.fromEntries(
      stdout
        .trim()
        .split("\n")
        .map((line) => /^(\w+)=(.*)$/.exec(line)?.slice(1) ?? []),
    );
    const environment = { endpoint: "whole", url: server.url, key: testSettings.PLATFORM_API_KEY, worker: "w9" };
    expect(printed).toEqual(workerEnvironment(environment));
    const self = new ScriptedWorker(printed, () => ({}));
    expect(await self.ping()).toBe(200);
  });

  it("says what it takes when it was given nothing", () => {
    const { stderr, status } = run([], { PLATFORM_API_KEY: "k" });
    expect(status).toBe(2);
    expect(stderr).toContain("npm run --silent worker-env -- <endpoint>");
  });
});
