// The npm package `openai`, unmodified, at a text model's OpenAI routes: through the gateway it does what it does at the platform.
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Server } from "../support/serve.ts";
import { gateway, platform } from "./support/faces.ts";

const model = "cogito-671b-v2-1-fp8-dynamic";
const messages = [{ role: "user" as const, content: "Say something." }];

let server: Server;

beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

describe.each([platform, gateway])("openai at $name", (face) => {
  let key: string;
  beforeAll(async () => {
    key = await face.key(server);
  });
  const client = (endpoint = model, apiKey = key) =>
    new OpenAI({ baseURL: `${server.url}${face.base}/${endpoint}/openai/v1`, apiKey, maxRetries: 0 });

  it("completes a chat", async () => {
    const completion = await client().chat.completions.create({ model, messages, max_tokens: 9 });
    expect(completion).toMatchObject({ object: "chat.completion", model, cost: expect.any(Number) });
    expect(completion.choices[0]).toMatchObject({ index: 0, finish_reason: "length", message: { role: "assistant" } });
    expect(completion.choices[0]?.message.content).toMatch(/^This is a sample answer/);
    expect(completion.usage?.completion_tokens).toBe(9);
  });

  it("streams a chat, chunk by chunk, with its usage last", async () => {
    const stream = await client().chat.completions.create({ model, messages, max_tokens: 9, stream: true });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    expect(text).toMatch(/^This is a sample answer/);
    expect(chunks.filter(({ choices }) => choices[0]?.delta.content)).toHaveLength(9);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 9 }, cost: expect.any(Number) });
  });

  it("lists the endpoint's model", async () => {
    const models = await client().models.list();
    expect(models.data.map(({ id }) => id)).toEqual([model]);
  });

  it("shows a refusal in OpenAI's shape", async () => {
    const unauthorized = await client(model, "wrong").models.list().catch(read);
    expect(unauthorized).toMatchObject({ status: 401, code: "UNAUTHORIZED", type: "authentication_error" });

    const noModel = await client("nowhere").chat.completions.create({ model, messages }).catch(read);
    expect(noModel).toMatchObject({ status: 404, code: face.unknownModel });

    const noRoute = await client().embeddings.create({ model, input: "x" }).catch(read);
    expect(noRoute).toMatchObject({ status: 404, type: "invalid_request_error" });
  });
});

describe("openai with an Idempotency-Key, by its own retries", () => {
  it("gets one completion for both of two calls, though the first one still runs", async () => {
    const key = await gateway.key(server);
    const openai = new OpenAI({
      baseURL: `${server.url}${gateway.base}/${model}/openai/v1`,
      apiKey: key,
      maxRetries: 5,
    });
    const call = () =>
      openai.chat.completions.create({ model, messages, max_tokens: 9 }, { headers: { "Idempotency-Key": "once" } });
    const [first, second] = await Promise.all([call(), call()]);
    expect(second).toEqual(first);
    const streamed = async () => {
      const stream = await openai.chat.completions.create(
        { model, messages, max_tokens: 9, stream: true },
        { headers: { "Idempotency-Key": "streamed" } },
      );
      const chunks = [];
      for await (const chunk of stream) chunks.push(chunk);
      return chunks;
    };
    expect(await streamed()).toEqual(await streamed());
  });
});

describe("openai's streams of what is not served", () => {
  it("are refused, and not empty", async () => {
    const key = await gateway.key(server);
    const openai = new OpenAI({
      baseURL: `${server.url}${gateway.base}/${model}/openai/v1`,
      apiKey: key,
      maxRetries: 0,
    });
    for (const call of [
      () => openai.responses.create({ model, input: "x", stream: true }),
      () => openai.completions.create({ model, prompt: "x", stream: true }),
    ]) {
      const refused: unknown = await call().catch(read);
      expect(refused).toMatchObject({ status: 404, type: "invalid_request_error", param: null });
    }
  });

  it("say which member of a body is wrong", async () => {
    const key = await gateway.key(server);
    const openai = new OpenAI({
      baseURL: `${server.url}${gateway.base}/${model}/openai/v1`,
      apiKey: key,
      maxRetries: 0,
    });
    const refused = await openai.chat.completions.create({ model, messages, n: -1 }).catch(read);
    expect(refused).toMatchObject({ status: 400, code: "INVALID_REQUEST", param: "n" });
  });
});

function read(thrown: unknown): APIError {
  if (thrown instanceof APIError) return thrown;
  throw thrown;
}
