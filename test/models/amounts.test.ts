// An amount is a safe integer of micro-USD by construction, whatever an input says beside its schema.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  describeModel,
  findModel,
  type Model,
  type ModelInput,
  models,
  readChat,
  reserveChat,
} from "../../src/models/index.ts";
import { runSample } from "../../src/samples/run-sample.ts";
import { allowed } from "./allowed.ts";

function model(id: string): Model {
  const found = findModel(id);
  if (!found) throw new Error(`no model ${id}`);
  return found;
}

const multipliers = [
  ...[
    "n",
    "best_of",
    "beam_width",
    "num_images",
    "num_outputs",
    "numImages",
    "number_of_images",
    "n_predict",
    "batch_size",
  ],
  ...["max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "maxTokens"],
];
/** What an attacker writes where a number is expected. */
const amounts = fc.oneof(
  fc.constantFrom<unknown>(-1, 0, -0, 0.5, 1, 2, 100, 1e15, 2 ** 53, 1e200, -1e200, 1e308, "5", "-5", "", true, [], {}),
  fc.integer(),
  fc.double(),
);
const extras = fc.dictionary(fc.constantFrom(...multipliers), amounts, { maxKeys: 3 });

const inputsOf = (found: Model) => allowed(describeModel(found).input) as fc.Arbitrary<ModelInput>;

describe.each(models)("$id", (found) => {
  const own = Object.keys(describeModel(found).input.properties ?? {});
  const foreign = extras.map((all) => Object.fromEntries(Object.entries(all).filter(([name]) => !own.includes(name))));

  it("reserves a safe integer up to its highest price, and never less for what stands beside its input", () => {
    fc.assert(
      fc.property(inputsOf(found), foreign, extras, fc.boolean(), (input, beside, nested, isNested) => {
        const alone = found.reserve(found.input.parse(input));
        const sampling = isNested && { sampling_params: { ...(input["sampling_params"] as object), ...nested } };
        const read = found.input.safeParse({ ...beside, ...input, ...sampling });
        if (!read.success) return;
        const micro = found.reserve(read.data);
        expect(Number.isSafeInteger(micro)).toBe(true);
        expect(micro).toBeGreaterThan(0);
        expect(micro).toBeLessThanOrEqual(found.maxPrice);
        if (!("max_tokens" in nested)) expect(micro).toBeGreaterThanOrEqual(alone);
      }),
      { numRuns: 60 },
    );
  });

  it("reserves a safe integer even of what no schema has seen", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.anything({ withBigInt: false })), extras, (rubbish, beside) => {
        const known = { width: 0, height: -1, duration: 1e300, prompt: "" };
        for (const input of [rubbish, { ...rubbish, ...known }, { ...rubbish, ...known, ...beside }]) {
          const micro = found.reserve(JSON.parse(JSON.stringify(input)) as ModelInput);
          expect(Number.isSafeInteger(micro) && micro > 0 && micro <= found.maxPrice).toBe(true);
        }
      }),
      { numRuns: 40 },
    );
  });

  it("costs what can be true, or nothing that is known", () => {
    const outputs = fc.oneof(
      fc.anything({ withBigInt: false }),
      fc.record({ cost: amounts }),
      fc.record({ usage: fc.record({ prompt_tokens: amounts, completion_tokens: amounts }) }),
    );
    fc.assert(
      fc.property(fc.oneof(outputs, fc.array(outputs, { maxLength: 3 })), (output) => {
        const micro = found.costOf(output, {});
        expect(micro === undefined || (Number.isSafeInteger(micro) && micro >= 0 && !Object.is(micro, -0))).toBe(true);
      }),
    );
  });
});

describe("a multiplier that the schema does not know", () => {
  const flux = "black-forest-labs-flux-1-schnell";
  const ask = { messages: [{ role: "user", content: "hi" }] };

  it.each<[string, ModelInput, ModelInput]>([
    [flux, { prompt: "a cat", width: 256, height: 256 }, { num_images: 100 }],
    [flux, { prompt: "a cat", width: 256, height: 256 }, { n: 100 }],
    [flux, { prompt: "a cat", width: 256, height: 256 }, { sampling_params: { n: 100 } }],
    [flux, { prompt: "a cat", width: 256, height: 256 }, { openai_input: { deeper: { n: 64 } } }],
    [flux, { prompt: "a cat", width: 256, height: 256 }, { sampling_params: [{ n: 64 }] }],
    [flux, { prompt: "a cat", width: 256, height: 256 }, { n: "100" }],
    ["p-video", { prompt: "a cat", duration: 1 }, { num_frames: 1e9 }],
    ["gpt-oss-120b", { prompt: "hi", max_tokens: 1 }, { best_of: 2 }],
    ["gpt-oss-120b", { prompt: "hi", max_tokens: 1 }, { max_completion_tokens: 131_072 }],
    ["gpt-oss-120b", { prompt: "hi", max_tokens: 1 }, { max_output_tokens: 2 }],
    ["gpt-oss-120b", { prompt: "hi", max_tokens: 1 }, { extra_body: { num_return_sequences: 9 } }],
    ["granite-4-0-h-small", { ...ask, sampling_params: { max_tokens: 1 } }, { max_tokens: 2 }],
  ])("means the highest price of %s for %o with %o", (id, input, beside) => {
    const found = model(id);
    expect(found.reserve(found.input.parse(input))).toBeLessThan(found.maxPrice);
    expect(found.reserve(found.input.parse({ ...input, ...beside }))).toBe(found.maxPrice);
  });

  it("multiplies nothing where it says one, or nothing", () => {
    const found = model(flux);
    const price = (beside: object) => found.reserve(found.input.parse({ prompt: "a cat", width: 256, ...beside }));
    for (const beside of [{ n: 1 }, { n: null }, { num_images: 1 }]) expect(price(beside)).toBe(price({}));
    expect(price({ num_inference_steps: 8 })).toBe(price({}));
  });
});

describe("a chat", () => {
  const price = model("gpt-oss-120b").tokens;
  const chat = { model: "m", messages: [{ role: "user", content: "hello" }], max_tokens: 10 };
  const reserve = (more: object) => {
    const call = { ...chat, ...more };
    const read = readChat(call);
    if (!read.chat || read.faults.length > 0 || !price) return read.faults.map(({ path }) => path.join("."));
    return reserveChat(read.chat, JSON.stringify(call).length, price);
  };

  it("counts the largest of its limits, times its choices", () => {
    const written = (more: object) =>
      Number(reserve({ ...more, padding: "" })) / 10 - Number(reserve({ padding: "" })) / 10;
    expect(written({ max_completion_tokens: 131_072 })).toBeGreaterThan(131_000);
    expect(written({ max_output_tokens: 100_000 })).toBeGreaterThan(99_000);
    expect(written({ n: 128 })).toBeGreaterThan(1270);
    expect(written({ best_of: 3, n: 2 })).toBeGreaterThan(20);
    expect(reserve({ max_tokens: undefined, max_output_tokens: 1 })).toBeGreaterThan(1_300_000);
  });

  it("reserves all that the model reads where a part of it is no text", () => {
    const content = [{ type: "image_url", image_url: { url: "https://media.example/cat.png" } }];
    expect(reserve({ messages: [{ role: "user", content }] })).toBeGreaterThan(1_300_000);
    expect(reserve({ messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }] })).toBeLessThan(10_000);
  });

  it.each<[object, string]>([
    [{ n: -1 }, "n"],
    [{ n: 0 }, "n"],
    [{ n: 1.5 }, "n"],
    [{ n: "2" }, "n"],
    [{ n: 1e9 }, "n"],
    [{ n: true }, "n"],
    [{ n: 128, max_tokens: 131_072 }, "n"],
    [{ n: 2, max_tokens: null }, "n"],
    [{ best_of: 128, max_tokens: 131_072 }, "best_of"],
    [{ max_tokens: -5 }, "max_tokens"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ max_tokens: "10" }, "max_tokens"],
    [{ max_completion_tokens: 0.5 }, "max_completion_tokens"],
    [{ max_output_tokens: 1e15 }, "max_output_tokens"],
    [{ num_return_sequences: 4 }, "num_return_sequences"],
    [{ num_images: "4" }, "num_images"],
    [{ sampling_params: { n: 4 } }, "sampling_params.n"],
    [{ extra_body: { max_new_tokens: 4 } }, "extra_body.max_new_tokens"],
    [{ messages: [] }, "messages"],
    [{ messages: [{ role: 5 }] }, "messages.0.role"],
    [{ stream: "yes" }, "stream"],
  ])("with %o is refused at %s", (change, at) => {
    expect(reserve({})).toBeGreaterThan(0);
    expect(reserve(change)).toEqual([at]);
  });

  it.each([
    [{ messages: [{ role: "user", content: 5 }] }, "expected a string or an array of parts, each with its type"],
    [{ messages: [{ role: "user", content: ["hi"] }] }, "expected a string or an array of parts, each with its type"],
    [{ stop: 5 }, "expected a string or an array of at most 64"],
  ])("with %o says what may stand there", (change, message) => {
    const { faults } = readChat({ messages: [{ role: "user", content: "hi" }], ...change });
    expect(faults.map((fault) => fault.message)).toEqual([message]);
  });

  it.each([
    [{ n: 2 }, "n", "max_tokens", 65_536],
    [{ n: 128, max_tokens: 131_072 }, "n", "max_tokens", 1024],
    [{ n: 2, best_of: 3 }, "best_of", "max_tokens", 43_690],
    [{ n: 4, max_completion_tokens: 100_000 }, "n", "max_completion_tokens", 32_768],
    [{ n: 4, max_tokens: 100, max_output_tokens: 131_072 }, "n", "max_output_tokens", 32_768],
  ])("with %o says at %s which %s would do, and that one does", (change, at, name, helps) => {
    const chat = { messages: [{ role: "user", content: "hi" }], ...change };
    const message = `Needs ${name} of at most ${helps}: all answers together may have 131072 tokens`;
    expect(readChat(chat).faults).toEqual([{ path: [at], message }]);
    expect(readChat({ ...chat, [name]: helps }).faults).toEqual([]);
    expect(readChat({ ...chat, [name]: helps + 1 }).faults).toHaveLength(1);
  });

  it("may have members that nobody knows, and a schema of its own whose fields are called as it likes", () => {
    const schema = { type: "object", properties: { n: { type: "integer" }, num_items: { type: "integer" } } };
    const strange = { response_format: { type: "json_schema", json_schema: { schema } }, top_k: 5, min_p: 0.1, n: 1 };
    expect(reserve(strange)).toBeGreaterThan(0);
  });
});

describe("a sample", () => {
  const texts = models.filter(({ kind }) => kind === "text");
  const around = {
    signal: new AbortController().signal,
    emit: () => {},
    rest: async () => {},
    putMedia: async () => "https://media.example/x",
    withMedia: async () => undefined,
  };
  const costOf = async (found: Model, given: Record<string, unknown>) => {
    const result = await runSample(found, given, around);
    if (result.kind !== "done") throw new Error(`the sample ${result.kind}`);
    return found.costOf(result.output, {}) ?? Number.NaN;
  };

  it.each(texts)("of $id never costs more than was reserved for the input that it accepted", async (found) => {
    await fc.assert(
      fc.asyncProperty(inputsOf(found), async (input) => {
        const read = found.input.parse(input);
        fc.pre(!/\[\w+\]/.test(JSON.stringify(read)));
        expect(await costOf(found, { ...read })).toBeLessThanOrEqual(found.reserve(read));
      }),
      { numRuns: 30 },
    );
  });

  it.each(texts)("of $id never costs more than was reserved for the chat that was accepted", async (found) => {
    const tokens = fc.option(fc.integer({ min: 1, max: 200 }));
    const chats = fc.record(
      {
        messages: fc.array(fc.record({ role: fc.constant("user"), content: fc.string() }), { minLength: 1 }),
        max_tokens: tokens,
        max_completion_tokens: tokens,
        max_output_tokens: tokens,
        n: fc.option(fc.integer({ min: 1, max: 5 })),
        best_of: fc.option(fc.integer({ min: 1, max: 5 })),
      },
      { requiredKeys: ["messages"] },
    );
    await fc.assert(
      fc.asyncProperty(chats, async (call) => {
        const { chat, faults } = readChat({ ...call, model: found.id });
        if (!chat || faults.length > 0 || !found.tokens) return;
        fc.pre(!/\[\w+\]/.test(JSON.stringify(chat)));
        const given = { openai_route: "/v1/chat/completions", openai_input: chat };
        const reserved = reserveChat(chat, new TextEncoder().encode(JSON.stringify(chat)).length, found.tokens);
        expect(await costOf(found, given)).toBeLessThanOrEqual(reserved);
      }),
      { numRuns: 60 },
    );
  });
});
