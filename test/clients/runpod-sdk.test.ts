// The npm package `runpod-sdk`, unmodified, over its whole surface: through the gateway it does what it does at the platform.
import runpodSdk from "runpod-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { type Face, gateway, mint, open, platform } from "../e2e/support/faces.ts";
import { Server } from "../support/serve.ts";
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { ScriptedWorker } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";

const image = "black-forest-labs-flux-1-schnell";
const text = "cogito-671b-v2-1-fp8-dynamic";
/** Endpoints without a worker: their jobs wait. */
const [waiting, limited, attached] = ["waiting", "limited", "attached"];
const picture = { input: { prompt: "a lighthouse", width: 256, height: 256, seed: 7 } };

let server: Server;

beforeAll(async () => {
  server = await Server.start({ settings: { ENDPOINTS: [waiting, limited, attached].join(",") } });
  await open(server, waiting);
});
afterAll(() => server.stop());

function endpointAt({ base }: Face, id: string, key: string) {
  const found = runpodSdk(key, { baseUrl: `${server.url}${base}` }).endpoint(id);
  if (!found) throw new Error("the SDK made no endpoint");
  return found;
}

describe.each([platform, gateway])("runpod-sdk at $name", (face) => {
  let key: string;
  beforeAll(async () => {
    key = await face.key(server);
  });
  const endpoint = (id: string, by = key) => endpointAt(face, id, by);

  it("runs a job and waits for it with runSync", async () => {
    const job = await endpoint(image).runSync(picture);
    expect(job).toMatchObject({ status: "COMPLETED", started: true, completed: true, succeeded: true });
    expect(job.id).toMatch(face.syncId);
    expect(job.output).toMatchObject({ image_url: expect.stringMatching(/^http/), cost: expect.any(Number) });
    expect(job.delayTime).toBeGreaterThanOrEqual(0);
    expect(job.executionTime).toBeGreaterThanOrEqual(0);
  });

  it("submits with run and follows with status and statusSync", async () => {
    const sdk = endpoint(image);
    const { id, status } = await sdk.run({ input: { ...picture.input, seed: 8 } });
    expect(status).toBe("IN_QUEUE");
    expect(await sdk.statusSync(id)).toMatchObject({ id, status: "COMPLETED", completed: true, succeeded: true });
    expect(await sdk.status(id)).toMatchObject({ id, status: "COMPLETED", output: { cost: expect.any(Number) } });
  });

  it("says FAILED with the worker's error, as a 200", async () => {
    const job = await endpoint(image).runSync({ input: { prompt: "[fail]" } });
    expect(job).toMatchObject({ status: "FAILED", completed: true, succeeded: false, error: expect.any(String) });
  });

  it("streams what the job yields, to the end", async () => {
    const sdk = endpoint(text);
    const { id } = await sdk.run({ input: { prompt: "Say something.", max_tokens: 12 } });
    const items: { output: { text: string[] }; metrics: object }[] = [];
    for await (const item of sdk.stream(id)) items.push(item);
    expect(items).toHaveLength(12);
    expect(items[0]?.metrics).toBeTypeOf("object");
    expect(items.flatMap(({ output }) => output.text).join("")).toMatch(/^This is a sample answer/);
  });

  it("cancels a waiting job", async () => {
    const sdk = endpoint(waiting);
    const { id } = await sdk.run({ input: {} });
    expect(await sdk.cancel(id)).toEqual({ id, status: "CANCELLED" });
    expect(await sdk.status(id)).toMatchObject({ status: "CANCELLED", completed: true, succeeded: false });
  });

  it("purges what waits and reads the health", async () => {
    const sdk = endpoint(waiting);
    for (let n = 0; n < 3; n++) await sdk.run({ input: { n } });
    expect((await sdk.health()).jobs).toMatchObject({ inQueue: 3, inProgress: 0 });
    expect(await sdk.purgeQueue()).toEqual({ removed: 3, status: "completed" });
    expect((await sdk.health()).jobs.inQueue).toBe(0);
    expect(Object.keys((await sdk.health()).workers).sort()).toEqual(
      ["idle", "initializing", "ready", "running", "throttled", "unhealthy"].sort(),
    );
  });

  it("throws on a wrong key, an unknown model and an unknown job, with the status and our body", async () => {
    const noKey = await endpoint(image, "wrong").run(picture).catch(read);
    expect(noKey).toMatchObject({ status: 401, data: { error: expect.any(String), code: "UNAUTHORIZED" } });
    const noModel = await endpoint("nowhere").runSync(picture).catch(read);
    expect(noModel).toMatchObject({ status: 404, data: { code: face.unknownModel } });
    const noJob = await endpoint(waiting).status("no-such-job").catch(read);
    expect(noJob).toMatchObject({ status: 404, data: { error: "job not found", code: "JOB_NOT_FOUND" } });
  });
});

describe("runpod-sdk", () => {
  it("gets its answer from a worker attached to the platform", async () => {
    const key = testSettings.PLATFORM_API_KEY;
    const environment = { endpoint: attached, url: server.url, key, worker: "w1" };
    const worker = new ScriptedWorker(workerEnvironment(environment), ({ input }) => ({ output: input })).start();
    const job = await endpointAt(platform, attached, key).runSync({ input: { echo: "é€😀" } });
    expect(job).toMatchObject({ status: "COMPLETED", output: { echo: "é€😀" }, workerId: "w1" });
    await worker.leave();
  });

  it("throws on too many requests, with the time to wait", async () => {
    const sdk = endpointAt(platform, limited, testSettings.PLATFORM_API_KEY);
    const tries = await inParallel([...Array(4).keys()], 1, () => sdk.purgeQueue().catch(read));
    const refused = tries.find((answer) => answer.status === 429);
    expect(refused).toMatchObject({ status: 429, data: { code: "RATE_LIMITED" }, retryAfter: expect.any(String) });
    const seconds = Number((refused as Refusal).retryAfter);
    expect(seconds).toBeGreaterThan(0);
    await eventually("the window's end", 15_000, () => sdk.purgeQueue().catch(() => undefined));
  });

  it("purges nobody else's jobs at the gateway, and knows none of them", async () => {
    const own = endpointAt(gateway, waiting, await mint(server, "ada"));
    const stranger = endpointAt(gateway, waiting, await mint(server, "eve"));
    const { id } = await own.run({ input: {} });
    expect(await stranger.purgeQueue()).toEqual({ removed: 0, status: "completed" });
    expect(await stranger.status(id).catch(read)).toMatchObject({ status: 404, data: { code: "JOB_NOT_FOUND" } });
    expect(await own.status(id)).toMatchObject({ id, status: "IN_QUEUE" });
  });
});

interface Refusal {
  readonly status: number;
  readonly data: object;
  readonly retryAfter: string | null;
}

/** What the SDK's HTTP client tells of an answer that is no 2xx. */
async function read(thrown: unknown): Promise<Refusal> {
  const { response } = thrown as { response: Response & { data: object } };
  return { status: response.status, data: response.data, retryAfter: response.headers.get("Retry-After") };
}
