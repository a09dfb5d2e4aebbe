// Large payloads through the real process: in and out byte by byte, with the verdicts that small ones get.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { Server } from "../support/serve.ts";
import { ScriptedWorker } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";

const mebibyte = 1024 * 1024;
const endpoint = "large";

let server: Server;
let worker: ScriptedWorker;

beforeAll(async () => {
  server = await Server.start({ settings: { ENDPOINTS: `${endpoint},refusing` } });
  const environment = { endpoint, url: server.url, key: testSettings.PLATFORM_API_KEY, worker: "w1" };
  worker = new ScriptedWorker(workerEnvironment(environment), () => ({}));
});
afterAll(async () => {
  await worker.leave();
  await server.stop();
});

interface Job {
  readonly id: string;
  readonly output?: unknown;
  readonly [other: string]: unknown;
}
type Sent = Response & { job: () => Promise<Job> };

async function send(path: string, body: string | ReadableStream): Promise<Sent> {
  // As the worker's: each on a connection of its own.
  const headers = { Connection: "close" };
  const init = { method: "POST", body, headers, duplex: "half" } as RequestInit;
  const response = await server.platform(path, init);
  return Object.assign(response, { job: async () => (await response.json()) as Job });
}

/** The answer to a body that is announced and never sent. */
function answerToHead(path: string, length: number): Promise<string> {
  const head = [`POST /platform/v2/${path} HTTP/1.1`, "Host: sluice", `Content-Length: ${length}`];
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write([...head, `Authorization: ${testSettings.PLATFORM_API_KEY}`, "", ""].join("\r\n"));
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", (data) => {
      socket.destroy();
      resolve(String(data));
    });
  });
}

/** Without a stated length. */
function chunked(text: string): ReadableStream {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.byteLength) return controller.close();
      controller.enqueue(bytes.subarray(at, at + 100_000));
      at += 100_000;
    },
  });
}

/** Text that a careless cut would break. */
const filler = (size: number) => 'é€😀 "\\ \n x'.repeat(Math.ceil(size / 12)).slice(0, Math.floor(size / 2));

describe("a large payload", () => {
  it.each([
    ["of stated length", (text: string) => text],
    ["chunked", chunked],
  ])("goes in %s, to the worker and out again, as it is", async (_name, carried) => {
    const input = { picture: filler(9 * mebibyte), nested: [1.5, { deep: null }] };
    const others = { policy: { ttl: 60_000 }, s3Config: { bucketName: "b" }, extra: [filler(2000)] };
    const request = ` \n${JSON.stringify({ id: "mine", ...others, input })} \n`;
    const { id } = await (await send(`${endpoint}/run`, carried(request))).job();
    const taken = await worker.take();
    expect(taken?.id).toBe(id);
    expect(same(taken, { ...others, input, id })).toBe(true);

    const output = { film: filler(18 * mebibyte), cost: 0.5 };
    expect(await worker.done(id, { output })).toBe(200);
    const job = await (await send(`${endpoint}/status/${id}`, "")).job();
    expect(job).toMatchObject({ id, status: "COMPLETED", workerId: "w1" });
    expect(same(job.output, output)).toBe(true);
  });

  it("counts the last of members with one name, as JSON.parse does", async () => {
    const [first, last] = [filler(1.5 * mebibyte), filler(mebibyte)].map((text) => JSON.stringify({ text }));
    const { id } = await (await send(`${endpoint}/run`, `{"input":${first},"input":${last}}`)).job();
    expect((await worker.take())?.input).toEqual(JSON.parse(last ?? ""));
    expect(await worker.done(id, `{"output":${first},"error":"so so","output":${last}}`)).toBe(200);
    const job = await (await send(`${endpoint}/status/${id}`, "")).job();
    expect(job).toMatchObject({ status: "FAILED", error: "so so" });
    expect(same(job.output, JSON.parse(last ?? ""))).toBe(true);
  });

  it("reports large progress, and a result that no job holds leaves nothing behind", async () => {
    const { id } = await (await send(`${endpoint}/run`, '{"input":{}}')).job();
    await worker.take();
    const draft = filler(3 * mebibyte);
    expect(await worker.progress(id, draft)).toBe(200);
    const job = await (await send(`${endpoint}/status/${id}`, "")).job();
    expect([job["status"], job.output === draft]).toEqual(["IN_PROGRESS", true]);
    await send(`${endpoint}/cancel/${id}`, "{}");
    expect(await worker.done(id, { output: draft })).toBe(409);
  });
});

/** toEqual would print megabytes. */
function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(sorted(left)) === JSON.stringify(sorted(right));
}
function sorted(value: unknown): unknown {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))
    : value;
}

describe("a large body that is refused", () => {
  const bodies: [string, (padding: string) => string][] = [
    ["is no JSON", (padding) => `{"input":{"a":"${padding}"`],
    ["has more behind it", (padding) => `{"input":{"a":"${padding}"}} x`],
    ["holds a bare control character", (padding) => `{"input":{"a":"\u0001${padding}"}}`],
    ["has no input", (padding) => `{"inputs":{"a":"${padding}"}}`],
    ["has an array for its input", (padding) => `{"input":["${padding}"]}`],
    ["has text for its input", (padding) => `{"input":"${padding}"}`],
    ["is an array", (padding) => `["${padding}"]`],
    ["is text", (padding) => `"${padding}"`],
    ["asks for a ttl out of range", (padding) => `{"input":{"a":"${padding}"},"policy":{"ttl":1}}`],
    ["has no object for a policy", (padding) => `{"policy":7,"input":{"a":"${padding}"}}`],
    ["wants its notice nowhere", (padding) => `{"webhook":"nowhere","input":{"a":"${padding}"}}`],
    ["has its webhook spelled otherwise", (padding) => `{"\\u0077ebhook":"nowhere","input":{"a":"${padding}"}}`],
    ["spoils its s3Config", (padding) => `{"input":{"a":"${padding}"},"s3Config":{"bucketName":1}}`],
  ];

  it.each(bodies)("… since it %s, is told so as a small one is", async (_name, body) => {
    const refusals = [];
    for (const padding of ["x", "x".repeat(2 * mebibyte)]) {
      const response = await send("refusing/run", body(padding));
      const { detail, code } = await response.job();
      refusals.push({ status: response.status, detail, code });
    }
    expect(refusals[0]?.status).toBe(400);
    expect(refusals[1]).toEqual(refusals[0]);
  });

  it.each([
    ["run", 10],
    ["runsync", 20],
  ])("%s takes %i MiB and not a byte more", { timeout: 60_000 }, async (operation, mebibytes) => {
    const around = '{"input":{"a":""},"policy":{"ttl":1}}'.length;
    const body = (size: number) => `{"input":{"a":"${"x".repeat(size - around)}"},"policy":{"ttl":1}}`;
    const limit = mebibytes * mebibyte;
    // A body within the limit is refused for what it says, one beyond it for its size.
    expect((await send(`refusing/${operation}`, body(limit))).status).toBe(400);
    expect((await send(`refusing/${operation}`, chunked(body(limit)))).status).toBe(400);
    const beyond = await send(`refusing/${operation}`, chunked(body(limit + 1)));
    expect([beyond.status, (await beyond.job())["code"]]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
    expect(await answerToHead(`refusing/${operation}`, limit + 1)).toMatch(/^HTTP\/1.1 413 /);
  });

  it("takes no job from a body that breaks off", async () => {
    const broken = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(`{"input":{"a":"${"x".repeat(2 * mebibyte)}`));
      },
      pull(controller) {
        controller.error(new Error("gone"));
      },
    });
    await expect(send("refusing/run", broken)).rejects.toThrow();
    const health = (await (await server.platform("refusing/health")).json()) as { jobs: { inQueue: number } };
    expect(health.jobs.inQueue).toBe(0);
  });
});
