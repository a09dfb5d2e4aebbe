// The packages `runpod-sdk` and `openai`, unmodified, with a user's token as their key: through the gateway as at the platform.
import OpenAI, { APIError } from "openai";
import runpodSdk from "runpod-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Server } from "../support/serve.ts";
import { testSettings } from "../support/settings.ts";

const image = "black-forest-labs-flux-1-schnell";
const text = "cogito-671b-v2-1-fp8-dynamic";
/** An endpoint without a worker: its jobs wait. */
const waiting = "waiting";
const messages = [{ role: "user" as const, content: "Say something." }];
const picture = { input: { prompt: "a lighthouse", width: 256, height: 256, seed: 7 } };

let server: Server;
let token: string;

beforeAll(async () => {
  server = await Server.start({ settings: { ENDPOINTS: waiting } });
  await call("PUT", `/admin/models/${waiting}`, testSettings.ADMIN_TOKEN, { passthrough: true, maxUsd: 0 });
  token = await mint("ada");
});
afterAll(() => server.stop());

async function call(method: string, path: string, key: string, body: object): Promise<Record<string, string>> {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(`${server.url}${path}`, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Record<string, string>;
}

async function mint(user: string): Promise<string> {
  const minted = await call("POST", "/tokens", testSettings.APP_SECRET, { user, plan: "unlimited" });
  return String(minted["token"]);
}

function endpoint(id: string, key = token) {
  const found = runpodSdk(key, { baseUrl: `${server.url}/v2` }).endpoint(id);
  if (!found) throw new Error("the SDK made no endpoint");
  return found;
}

const handle = /^[\w-]+\.[0-9a-z]{23}\.[0-9a-f]{32}$/;

describe("runpod-sdk", () => {
  it("runs a job and waits for it with runSync", async () => {
    const job = await endpoint(image).runSync(picture);
    expect(job).toMatchObject({ status: "COMPLETED", started: true, completed: true, succeeded: true });
    expect(job.id).toMatch(handle);
    expect(job.output).toMatchObject({ image_url: expect.stringMatching(/^http/), cost: expect.any(Number) });
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
    const items: { output: { text: string[] } }[] = [];
    for await (const item of sdk.stream(id)) items.push(item);
    expect(items.flatMap(({ output }) => output.text).join("")).toMatch(/^This is a sample answer/);
    expect(items).toHaveLength(12);
  });

  it("cancels a waiting job, purges what waits, reads the health", async () => {
    const sdk = endpoint(waiting);
    const { id } = await sdk.run({ input: {} });
    expect(await sdk.cancel(id)).toEqual({ id, status: "CANCELLED" });
    expect(await sdk.status(id)).toMatchObject({ status: "CANCELLED", completed: true, succeeded: false });
    for (let n = 0; n < 3; n++) await sdk.run({ input: { n } });
    expect((await sdk.health()).jobs).toMatchObject({ inQueue: 3, inProgress: 0 });
    expect(await sdk.purgeQueue()).toEqual({ removed: 3, status: "completed" });
    expect((await sdk.health()).jobs.inQueue).toBe(0);
  });

  it("purges nobody else's jobs, and knows none of them", async () => {
    const { id } = await endpoint(waiting).run({ input: {} });
    const stranger = endpoint(waiting, await mint("eve"));
    expect(await stranger.purgeQueue()).toEqual({ removed: 0, status: "completed" });
    expect(await stranger.status(id).catch(read)).toMatchObject({ status: 404, data: { code: "JOB_NOT_FOUND" } });
    expect(await endpoint(waiting).status(id)).toMatchObject({ id, status: "IN_QUEUE" });
  });

  it("throws on a wrong key, an unknown model and an unknown job, with the status and our body", async () => {
    const noKey = await endpoint(image, "wrong").run(picture).catch(read);
    expect(noKey).toMatchObject({ status: 401, data: { code: "UNAUTHORIZED" } });
    const noModel = await endpoint("nowhere").runSync(picture).catch(read);
    expect(noModel).toMatchObject({ status: 404, data: { code: "MODEL_NOT_FOUND" } });
    const noJob = await endpoint(image).status("no-such-job").catch(read);
    expect(noJob).toMatchObject({ status: 404, data: { error: "job not found" } });
  });
});

/** What the SDK's HTTP client tells of an answer that is no 2xx. */
async function read(thrown: unknown): Promise<{ status: number; data: object }> {
  const { response } = thrown as { response: Response & { data: object } };
  return { status: response.status, data: response.data };
}

describe("openai", () => {
  const client = (model = text, apiKey = token) =>
    new OpenAI({ baseURL: `${server.url}/v2/${model}/openai/v1`, apiKey, maxRetries: 0 });

  it("completes a chat", async () => {
    const completion = await client().chat.completions.create({ model: text, messages, max_tokens: 9 });
    expect(completion).toMatchObject({ object: "chat.completion", model: text, cost: expect.any(Number) });
    expect(completion.choices[0]?.message.content).toMatch(/^This is a sample answer/);
    expect(completion.usage?.completion_tokens).toBe(9);
  });

  it("streams a chat, chunk by chunk, with its usage last", async () => {
    const stream = await client().chat.completions.create({ model: text, messages, max_tokens: 9, stream: true });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const said = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    expect(said).toMatch(/^This is a sample answer/);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 9 }, cost: expect.any(Number) });
  });

  it("lists the endpoint's model", async () => {
    expect((await client().models.list()).data.map(({ id }) => id)).toEqual([text]);
  });

  it("shows refusals in OpenAI's shape", async () => {
    const refused = await client(text, "wrong").models.list().catch(readOpenAi);
    expect(refused).toMatchObject({ status: 401, code: "UNAUTHORIZED", type: "authentication_error" });
    const noModel = await client("nowhere").chat.completions.create({ model: text, messages }).catch(readOpenAi);
    expect(noModel).toMatchObject({ status: 404, code: "MODEL_NOT_FOUND" });
    const noRoute = await client().embeddings.create({ model: text, input: "x" }).catch(readOpenAi);
    expect(noRoute).toMatchObject({ status: 404, type: "invalid_request_error" });
  });
});

function readOpenAi(thrown: unknown): APIError {
  if (thrown instanceof APIError) return thrown;
  throw thrown;
}
