// What real clients send passes; what cannot be right is refused where it stands.
import { describe, expect, it } from "vitest";
import { describeModel as entryOf, findModel, type Model, type ModelInput } from "../../src/models/index.ts";
import { changed, faults } from "./requests.ts";

function model(id: string): Model {
  const found = findModel(id);
  if (!found) throw new Error(`no model ${id}`);
  return found;
}

const flux = "black-forest-labs-flux-1-schnell";
const kontext = "black-forest-labs-flux-1-kontext-dev";
const cat = "https://media.example/cat.png";
/** What a widely used image client adds for every model whose fields it does not know. */
const byDefault = { negative_prompt: "", size: "1328*1328", seed: -1, enable_safety_checker: true };

const sent: [string, ModelInput][] = [
  [
    flux,
    {
      prompt: "a cat",
      negative_prompt: "",
      seed: -1,
      num_inference_steps: 4,
      guidance: 7,
      width: 1328,
      height: 1328,
      image_format: "png",
    },
  ],
  [flux, { prompt: "a cat", width: 1472, height: 1140, maxPollAttempts: 60, pollIntervalMillis: 4000 }],
  [kontext, { prompt: "a cat", image: cat, size: "1328*1328", output_format: "png", negative_prompt: "" }],
  ["qwen-image-t2i", { prompt: "a cat", ...byDefault }],
  ["qwen-image-edit", { prompt: "a cat", image: cat, ...byDefault }],
  ["qwen-image-edit-2511", { prompt: "a cat", images: [cat], ...byDefault }],
  ["seedream-v4-t2i", { prompt: "a cat", ...byDefault, size: "4096*4096" }],
  ["z-image-turbo", { prompt: "a cat", ...byDefault }],
  ["wan-2-6-t2i", { prompt: "a cat", ...byDefault }],
  ["google-nano-banana-2-edit", { prompt: "a cat", images: [cat], ...byDefault }],
  [
    "nano-banana-pro-edit",
    {
      prompt: "a cat",
      images: [cat],
      aspect_ratio: "1:1",
      resolution: "1k",
      output_format: "jpeg",
      enable_base64_output: false,
      enable_sync_mode: false,
    },
  ],
  ["p-image-t2i", { prompt: "a cat", aspect_ratio: "1:1", disable_safety_checker: false }],
  ["p-video", { prompt: "a cat", duration: 5, fps: 24, seed: 7, size: "1280*720" }],
  ["wan-2-6-t2v", { prompt: "a cat", duration: 10, aspect_ratio: "16:9", size: "720*1280" }],
  ["sora-2-pro-i2v", { prompt: "a cat", image: "data:image/png;base64,iVBORw0KGgo=", duration: 8, size: "1280*720" }],
  ["chatterbox-turbo", { prompt: "hello", voice_url: "https://media.example/me.wav" }],
  ["gpt-oss-120b", { prompt: "hello", max_tokens: 4096, tools: [{ type: "function" }], stream: true }],
];

describe("what clients send", () => {
  it.each(sent)("%s is accepted", (id, input) => {
    expect(faults(model(id), input)).toEqual([]);
  });
});

describe("a medium", () => {
  const valid = { prompt: "a cat", image: cat };

  it.each([
    ["an https URL", "https://media.example/cat.png?size=1&mode=2#top"],
    ["a data URL", "data:image/png;base64,iVBORw0KGgo="],
    ["base64", "iVBORw0KGgo="],
    ["base64 in lines", "iVBORw0KGgo\nAAAANSUhEUg==\n"],
    ["base64url", "iVBORw0KGg-_"],
  ])("may be %s", (_, image) => {
    expect(faults(model(kontext), changed(valid, "image", image))).toEqual([]);
  });

  it.each([
    ["nothing", ""],
    ["a URL of another scheme", "ftp://media.example/cat.png"],
    ["a file", "file:///etc/passwd"],
    ["a script", "javascript:alert(1)"],
    ["an address without a host", "https://"],
    ["a URL with a line break", "https://media.example/\r\nx-evil: 1"],
    ["a host without a scheme", "media.example/cat.png"],
  ])("is never %s", (_, image) => {
    expect(new Set(faults(model(kontext), changed(valid, "image", image)))).toEqual(new Set(["image"]));
  });

  it("is as long as a body can be, and no longer", () => {
    const limit = 20 * 1024 ** 2;
    expect(faults(model(kontext), changed(valid, "image", "A".repeat(limit)))).toEqual([]);
    expect(faults(model(kontext), changed(valid, "image", "A".repeat(limit + 1)))).toEqual(["image"]);
  });

  it("says which of a list is wrong", () => {
    const input = { prompt: "a cat", images: [cat, "ftp://media.example/cat.png"] };
    expect(faults(model("nano-banana-edit"), input)).toEqual(["images.1"]);
  });
});

describe("a bound", () => {
  it.each([
    [flux, { prompt: "a cat" }, "prompt", ""],
    [flux, { prompt: "a cat" }, "prompt", "a".repeat(32_769)],
    [flux, { prompt: "a cat" }, "seed", -2],
    [flux, { prompt: "a cat" }, "seed", 2 ** 53],
    [flux, { prompt: "a cat" }, "width", null],
    [kontext, { prompt: "a cat", image: cat }, "size", "1024x1024"],
    [kontext, { prompt: "a cat", image: cat }, "size", "0*1024"],
    [kontext, { prompt: "a cat", image: cat }, "size", "1024*1024*1"],
    ["p-video", { prompt: "a cat" }, "duration", 0],
    ["p-video", { prompt: "a cat" }, "duration", 21],
    ["p-video", { prompt: "a cat" }, "fps", 25],
    ["wan-2-6-i2v", { prompt: "a cat", image: cat }, "duration", 7],
    ["sora-2-i2v", { prompt: "a cat", image: cat, duration: 4 }, "duration", 13],
    ["vidu-q3-t2v", { prompt: "a cat" }, "duration", 17],
    ["gpt-oss-120b", { prompt: "hello" }, "max_tokens", 0],
    ["gpt-oss-120b", { prompt: "hello" }, "max_tokens", 131_073],
    ["gpt-oss-120b", { prompt: "hello" }, "top_p", 1.1],
    ["granite-4-0-h-small", { messages: [{ role: "user", content: "hi" }] }, "messages", []],
    ["granite-4-0-h-small", { messages: [{ role: "user", content: "hi" }] }, "sampling_params.max_tokens", 131_073],
    ["chatterbox-turbo", { prompt: "hello" }, "prompt", "a".repeat(5001)],
    ["minimax-speech-02-hd", { prompt: "hello" }, "prompt", "a".repeat(10_001)],
  ] satisfies [string, ModelInput, string, unknown][])("of %s %o holds for %s", (id, valid, name, value) => {
    expect(faults(model(id), valid)).toEqual([]);
    expect(faults(model(id), changed(valid, name, value))).toEqual([name]);
  });

  it("is told as a preference where a client's default breaks it", () => {
    const { properties } = entryOf(model(flux)).input;
    expect(properties?.["width"]).toMatchObject({ description: expect.stringContaining("multiple of 64") });
    expect(properties?.["width"]).not.toHaveProperty("multipleOf");
    const sizes = entryOf(model("wan-2-6-t2i")).input.properties?.["size"];
    expect(sizes).toMatchObject({ examples: ["1024*1024", "1024*768", "1440*1024"] });
  });
});

describe("an unknown key", () => {
  const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

  it("may hold anything, up to a depth that is safe to walk", () => {
    expect(faults(model(flux), { prompt: "a cat", leaked: nested(60) })).toEqual([]);
    expect(faults(model(flux), { prompt: "a cat", leaked: nested(100) })).toEqual([""]);
    expect(faults(model(flux), { prompt: "a cat", leaked: nested(100_000) })).toEqual([""]);
  });
});

describe.each([[[]], [null], ["a cat"], [7], [undefined]])("an input that is %o", (input) => {
  it("is refused", () => {
    expect(faults(model(flux), input)).toEqual([""]);
  });
});
