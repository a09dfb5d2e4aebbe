// Samples: every model of the catalog answers in its documented shape, within its price; and the trouble a prompt may ask for.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { findModel, type Model, models } from "../../src/models/index.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { call } from "../support/front-door.ts";
import { endpoint, eventually, noon, pass, setTime } from "./support/endpoint.ts";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const text = "qwen3-32b-awq";
const image = "black-forest-labs-flux-1-dev";
const picture = "https://example.com/a.png";
/** Whatever a model may need; each takes what it knows, and some take a thing in one form only. */
const everything = {
  prompt: "a cat",
  seed: 7,
  width: 256,
  height: 256,
  image: picture,
  images: [picture],
  video: picture,
  audio: picture,
  messages: [{ role: "user", content: "a cat" }],
  character_orientation: "image",
};
const forms = [everything, { ...everything, size: "480p" }, { ...everything, duration: 5 }];
const inputOf = (model: Model) => forms.find((form) => model.input.safeParse(form).success) ?? everything;

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly output: Record<string, unknown> & { cost: number };
}

describe.each(models.map((model) => [model.id, model] as const))("%s", (id, model) => {
  it("answers in its documented shape, at a cost within its price", async () => {
    const e = endpoint(id);
    const input = inputOf(model);
    const answer = await e.read<Answer>("POST", "runsync", { json: { input } });
    expect(answer).toMatchObject({ status: "COMPLETED" });
    const cost = model.costOf(answer.output, input);
    expect(cost).toBeGreaterThan(0);
    expect(cost).toBeLessThanOrEqual(model.reserve(model.input.parse(input)));
    if (model.output === "text") {
      const shape = {
        choices: [{ tokens: [expect.any(String)] }],
        usage: { input: expect.any(Number), output: expect.any(Number) },
      };
      return expect(answer.output).toEqual([{ ...shape, cost: expect.any(Number) }]);
    }
    expect(Object.keys(answer.output).sort()).toEqual([model.output, "cost"].sort());
    const url = new URL(String(answer.output[model.output]));
    const file = await call("GET", url.pathname);
    expect(file.status).toBe(200);
    expect(file.headers.get("Content-Type")).toMatch(/^(image|video|audio)\//);
    expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(0);
  });
});

const oneOfEachKind = [...new Map(models.map((model) => [model.kind, model.id])).values()];

it.each(oneOfEachKind)("%s runs without any input, too", async (id) => {
  expect(await endpoint(id).post("runsync", { input: {} })).toMatchObject({ status: "COMPLETED" });
});

describe("a text model", () => {
  it("streams token by token, with metrics and the usage so far", async () => {
    const e = endpoint(text);
    const answer = await e.read<{ id: string; output: { choices: { tokens: string[] }[] }[] }>("POST", "runsync", {
      json: { input: { prompt: "hello" } },
    });
    const { stream } = await e.read<{ stream: { output: { text: string[] }; metrics: object }[] }>(
      "GET",
      `stream/${answer.id}`,
    );
    expect(stream.length).toBeGreaterThan(5);
    const counts = { input_tokens: expect.any(Number), output_tokens: 1 };
    expect(stream[0]).toEqual({
      output: { ...counts, text: [expect.any(String)] },
      metrics: { ...counts, stream_index: 0 },
    });
    const said = stream.map(({ output }) => output.text.join("")).join("");
    expect(said).toBe(answer.output[0]?.choices[0]?.tokens.join(""));
  });

  it("stops at as many tokens as were asked for", async () => {
    const input = { prompt: "hello", max_tokens: 3 };
    const { output } = await endpoint(text).read<{ output: object[] }>("POST", "runsync", { json: { input } });
    expect(output[0]).toMatchObject({ usage: { output: 3 } });
  });
});

describe("an input that the model does not take", () => {
  it("fails the job, and says which field", async () => {
    const answer = await endpoint(image).post("runsync", { input: { prompt: "a cat", width: 7 } });
    expect(answer).toMatchObject({ status: "FAILED", error: expect.stringMatching(/^width: /) });
  });
});

describe("a prompt with", () => {
  const run = (words: string, id = image) =>
    endpoint(id).read<Answer>("POST", "runsync?wait=1000", { json: { input: { prompt: words } } });

  it("[fail] fails", async () => {
    expect(await run("a cat [fail]")).toMatchObject({ status: "FAILED", error: expect.any(String) });
  });
  it("[crash] loses its worker twice", async () => {
    const lost = { status: "FAILED", retries: 1, error: "job timed out after 1 retries" };
    expect(await run("[crash]")).toMatchObject(lost);
  });
  it("[huge] gives an output of 15 MB", async () => {
    expect(JSON.stringify((await run("[huge]")).output).length).toBeGreaterThan(15_000_000);
  });
  it("[nocost] says no cost", async () => {
    expect((await run("[nocost]")).output).toEqual({ image_url: expect.any(String) });
    expect(await run("[nocost]", text)).toMatchObject({ output: [expect.not.objectContaining({ cost: 0.001 })] });
  });
  it("[slow] takes its time, and is stopped by a cancel", async () => {
    const e = endpoint(image);
    const id = await e.submit({ input: { prompt: "[slow]" } });
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS" });
    expect(await e.post(`cancel/${id}`)).toEqual({ id, status: "CANCELLED" });
  });
  it("[timeout] runs until its time to execute is over", async () => {
    const e = endpoint(image);
    const id = await e.submit({ input: { prompt: "[timeout]" }, policy: { executionTimeout: 5000 } });
    pass(5000);
    await e.ring();
    expect(await e.get(`status/${id}`)).toMatchObject({ status: "TIMED_OUT", error: "executionTimeout exceeded" });
  });
});

describe("a built-in worker", () => {
  it("that dies with the object runs its job once more, and that is counted", async () => {
    const { abortAllDurableObjects } = await import("cloudflare:test");
    const e = endpoint(image);
    const id = await e.submit({ input: { prompt: "[timeout]" } });
    await abortAllDurableObjects();
    await eventually(async () =>
      expect(await e.get(`status/${id}`)).toMatchObject({ status: "IN_PROGRESS", retries: 1 }),
    );
    await abortAllDurableObjects();
    const failed = { status: "FAILED", error: "job timed out after 1 retries" };
    await eventually(async () => expect(await e.get(`status/${id}`)).toMatchObject(failed));
  });
});

it("knows all models of the catalog", () => {
  expect(models).toHaveLength(40);
  expect(findModel(text)?.kind).toBe("text");
});
