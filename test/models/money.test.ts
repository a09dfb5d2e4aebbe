// What is reserved, to the micro-USD, and what an answer is believed to cost.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeModel as entryOf, findModel, type Model, type ModelInput, models } from "../../src/models/index.ts";
import { amount } from "../support/amount.ts";
import { allowed } from "./allowed.ts";

function model(id: string): Model {
  const found = findModel(id);
  if (!found) throw new Error(`no model ${id}`);
  return found;
}

const cat = "https://media.example/cat.png";
const prompt = "a cat";
const images = [cat];

const reserved: [string, ModelInput, number][] = [
  ["black-forest-labs-flux-1-dev", { prompt }, 20_972],
  ["black-forest-labs-flux-1-dev", { prompt, width: 1000, height: 1000 }, 20_000],
  ["black-forest-labs-flux-1-dev", { prompt, width: 256, height: 256 }, 1311],
  ["black-forest-labs-flux-1-dev", { prompt, width: 1536, height: 1536 }, 47_186],
  ["black-forest-labs-flux-1-schnell", { prompt }, 2517],
  ["black-forest-labs-flux-1-schnell", { prompt, width: 1328, height: 1328 }, 4233],
  ["black-forest-labs-flux-1-kontext-dev", { prompt, image: cat }, 25_000],
  ["qwen-image-t2i", { prompt }, 20_000],
  ["qwen-image-t2i-lora", { prompt }, 25_000],
  ["qwen-image-edit", { prompt, image: cat }, 20_000],
  ["qwen-image-edit-2511", { prompt, images }, 20_000],
  ["qwen-image-edit-2511-lora", { prompt, images }, 25_000],
  ["nano-banana-edit", { prompt, images }, 38_000],
  ["google-nano-banana-2-edit", { prompt, images }, 87_500],
  ["google-nano-banana-2-edit", { prompt, images, resolution: "2k" }, 130_000],
  ["google-nano-banana-2-edit", { prompt, images, resolution: "4k" }, 175_000],
  ["nano-banana-pro-edit", { prompt, images, resolution: "1k" }, 240_000],
  ["p-image-t2i", { prompt }, 5000],
  ["p-image-edit", { prompt, images }, 10_000],
  ["p-video", { prompt }, 100_000],
  ["p-video", { prompt, duration: 7, resolution: "1080p" }, 280_000],
  ["seedream-v4-t2i", { prompt }, 27_000],
  ["seedream-v4-edit", { prompt, images }, 27_000],
  ["z-image-turbo", { prompt }, 5000],
  ["wan-2-1-i2v-720", { prompt, image: cat }, 300_000],
  ["wan-2-1-i2v-720", { prompt, image: cat, duration: 6 }, 600_000],
  ["wan-2-1-i2v-720", { prompt, image: cat, duration: 10 }, 600_000],
  ["wan-2-2-i2v-720", { prompt, image: cat }, 900_000],
  ["wan-2-2-t2v-720-lora", { prompt, image: cat }, 560_000],
  ["wan-2-5", { prompt, image: cat }, 1_500_000],
  ["wan-2-6-i2v", { prompt, image: cat }, 500_000],
  ["wan-2-6-i2v", { prompt, image: cat, size: "1920*1080", duration: 15 }, 2_250_000],
  ["wan-2-6-t2v", { prompt }, 2_250_000],
  ["wan-2-6-t2i", { prompt }, 30_000],
  ["kling-v2-1-i2v-pro", { prompt, image: cat }, 450_000],
  ["kling-v2-1-i2v-pro", { prompt, image: cat, duration: 10 }, 900_000],
  ["kling-v2-6-std-motion-control", { image: cat, video: cat, character_orientation: "image" }, 700_000],
  ["kling-v2-6-std-motion-control", { image: cat, video: cat, character_orientation: "video" }, 2_100_000],
  ["kling-video-o1-r2v", { prompt, images }, 560_000],
  ["seedance-v1-5-pro-i2v", { prompt, image: cat, duration: 12 }, 624_000],
  ["sora-2-i2v", { prompt, image: cat, duration: 4 }, 1_200_000],
  ["sora-2-pro-i2v", { prompt, image: cat, duration: 4 }, 6_000_000],
  ["vidu-q3-i2v", { prompt, image: cat }, 750_000],
  ["vidu-q3-t2v", { prompt, duration: 16 }, 2_400_000],
  ["infinitetalk", { prompt, image: cat, audio: cat, size: "480p" }, 500_000],
  ["minimax-speech-02-hd", { prompt: "a".repeat(1000) }, 50_000],
  ["minimax-speech-02-hd", { prompt: "a" }, 50],
  ["chatterbox-turbo", { prompt: "a".repeat(100) }, 51_000],
];

const dearest: [string, number][] = [
  ["black-forest-labs-flux-1-dev", 47_186],
  ["black-forest-labs-flux-1-schnell", 5663],
  ["google-nano-banana-2-edit", 175_000],
  ["p-video", 800_000],
  ["wan-2-1-i2v-720", 600_000],
  ["wan-2-6-i2v", 2_250_000],
  ["kling-v2-1-i2v-pro", 900_000],
  ["kling-v2-6-std-motion-control", 2_100_000],
  ["kling-video-o1-r2v", 1_120_000],
  ["seedance-v1-5-pro-i2v", 624_000],
  ["sora-2-pro-i2v", 6_000_000],
  ["vidu-q3-i2v", 2_400_000],
  ["minimax-speech-02-hd", 500_000],
  ["chatterbox-turbo", 2_501_000],
  ["cogito-671b-v2-1-fp8-dynamic", 131_072],
  ["gpt-oss-120b", 2_621_440],
  ["moonshot-kimi", 5_111_808],
];

describe("the reservation", () => {
  it.each(reserved)("of %s for %o is %d", (id, input, microUsd) => {
    const found = model(id);
    expect(found.reserve(found.input.parse(input))).toBe(microUsd);
  });

  it.each(dearest)("of %s is at most %d", (id, microUsd) => {
    expect(model(id).maxPrice).toBe(microUsd);
  });

  it("is the dearest where the input does not say enough to know better", () => {
    for (const id of ["black-forest-labs-flux-1-dev", "p-video", "wan-2-6-i2v", "vidu-q3-i2v", "chatterbox-turbo"]) {
      expect(model(id).reserve({}), id).toBe(model(id).maxPrice);
    }
    expect(model("p-video").reserve({ resolution: "__proto__", duration: 20 })).toBe(800_000);
  });

  it("counts a text model's input by its bytes and its answer by max_tokens", () => {
    const gpt = model("gpt-oss-120b");
    const price = (input: ModelInput) => gpt.reserve(gpt.input.parse(input));
    const less = price({ prompt: "hello", max_tokens: 100 });
    expect(price({ prompt: "hello", max_tokens: 101 }) - less).toBe(10);
    expect(price({ prompt: "hello!", max_tokens: 100 }) - less).toBe(10);
    expect(price({ prompt: "hello猫", max_tokens: 100 }) - less).toBe(30);
    expect(price({ prompt: "hello", max_tokens: 100, sampling_params: { max_tokens: 50_000 } }) - less).toBeGreaterThan(
      499_000,
    );
    expect(price({ prompt: "a".repeat(1_000_000), max_tokens: 131_072 })).toBe(gpt.maxPrice);
  });
});

describe.each(models)("$id", (found) => {
  it("never reserves more than its maximum, whatever it accepts", () => {
    const inputs = allowed(entryOf(found).input) as fc.Arbitrary<ModelInput>;
    fc.assert(
      fc.property(inputs, (input) => {
        const micro = found.reserve(found.input.parse(input));
        expect(Number.isSafeInteger(micro)).toBe(true);
        expect(micro).toBeGreaterThan(0);
        expect(micro).toBeLessThanOrEqual(found.maxPrice);
      }),
      { numRuns: amount(400) },
    );
  });
});

describe("the cost", () => {
  const image = model("z-image-turbo");
  const gpt = model("gpt-oss-120b");
  const kimi = model("moonshot-kimi");
  const usage = { input: 10, output: 20 };

  it.each<[string, unknown, number | undefined]>([
    ["said", { image_url: cat, cost: 0.005 }, 5000],
    ["nothing", { cost: 0 }, 0],
    ["less than nothing, just", { cost: -0 }, 0],
    ["not a whole micro-USD", { cost: 0.0024576 }, 2458],
    ["what floats make of it", { cost: 0.1 + 0.2 }, 300_000],
    ["a thousand times the estimate", { cost: 5 }, 5_000_000],
    ["absent", { image_url: cat }, undefined],
    ["null", { cost: null }, undefined],
    ["negative", { cost: -0.01 }, undefined],
    ["negative by less than counts", { cost: -1e-9 }, undefined],
    ["a string", { cost: "0.01" }, undefined],
    ["not a number", { cost: Number.NaN }, undefined],
    ["endless", { cost: Number.POSITIVE_INFINITY }, undefined],
    ["more than all the money", { cost: 1e300 }, undefined],
    ["an object", { cost: { usd: 1 } }, undefined],
    ["of no output", undefined, undefined],
    ["of a null output", null, undefined],
    ["of a string", "https://media.example/cat.png", undefined],
    ["of an empty list", [], undefined],
    ["of a list of rubbish", [null, 7, "x"], undefined],
    ["tokens, which no picture costs", { usage }, undefined],
  ])("of a picture may be %s", (_, output, microUsd) => {
    expect(image.costOf(output, {})).toBe(microUsd);
  });

  it.each<[string, unknown, number | undefined]>([
    ["in the first of a list", [{ choices: [{ tokens: ["hi"] }], cost: 0.0003, usage }], 300],
    ["in a chat body", { choices: [], cost: 0.0005, usage: { prompt_tokens: 1, completion_tokens: 1 } }, 500],
    ["in the last chunk", [{ choices: [] }, { cost: 0.0007, usage }], 700],
    ["its usage", [{ choices: [], usage }], 300],
    ["its usage, as OpenAI writes it", { usage: { prompt_tokens: 100, completion_tokens: 50 } }, 1500],
    ["its usage, as vLLM writes it", { usage: { input_tokens: 3, output_tokens: 4 } }, 70],
    ["its usage, chunk by chunk", [{ usage }, { usage: { input: 0, output: 5 } }], 350],
    ["null beside a usage", { cost: null, usage }, 300],
    ["a lie beside a usage", { cost: -1, usage }, undefined],
    ["negative tokens", { usage: { input: -1, output: 2 } }, undefined],
    ["half tokens", { usage: { input: 1.5, output: 2 } }, undefined],
    ["tokens as text", { usage: { input: "1", output: 2 } }, undefined],
    ["a usage that is none", { usage: "much" }, undefined],
    ["a usage without counts (attack A6)", { usage: {} }, undefined],
    ["a usage of counts that nobody knows (attack A6)", { usage: { total_tokens: 7, inputTokens: 3 } }, undefined],
    ["raw events", ["data: {}\n\n", "data: [DONE]\n\n"], undefined],
  ])("of a text may be %s", (_, output, microUsd) => {
    expect(gpt.costOf(output, {})).toBe(microUsd);
  });

  it("of a text by usage tells input from output", () => {
    expect(kimi.costOf({ usage: { input: 1000, output: 100 } }, {})).toBe(4500);
  });
});
