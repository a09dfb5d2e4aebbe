// A sample picture, in the size and format that the model was asked for.
import type { ModelInput } from "../../../models/model.ts";
import { render } from "./media/render.ts";
import { promptOf, type Sample } from "./run.ts";

const longSide = 1024;
const bounds = { min: 64, max: 2048 };
const formats = ["png", "jpeg", "webp"] as const;
const resolutions: Record<string, number> = { "1k": 1024, "2k": 1536, "4k": 2048 };

export const sampleImage: Sample = async (model, input, { putMedia }) => {
  const asked = input["image_format"] ?? input["output_format"] ?? "png";
  const format = formats.find((known) => known === asked) ?? "png";
  const picture = { prompt: promptOf(input), seed: seedOf(input), ...sizeOf(input) };
  const { bytes, contentType } = await render({ format, ...picture });
  const image_url = await putMedia({ bytes, contentType, extension: format === "jpeg" ? "jpg" : format });
  return { image_url, cost: model.reserve(input) / 1e6 };
};

/** Without a seed each call draws another picture. */
export function seedOf(input: ModelInput): number {
  const seed = input["seed"];
  return typeof seed === "number" && seed >= 0 ? seed : (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
}

/** `width` and `height`, or `size` as 1024*768, or `aspect_ratio` with `resolution`. */
export function sizeOf(input: ModelInput): { width: number; height: number } {
  const { width, height, size, aspect_ratio: ratio, resolution } = input;
  if (typeof width === "number" && typeof height === "number") return bounded(width, height);
  const [, sizeWidth, sizeHeight] = /^(\d+)\*(\d+)$/.exec(String(size)) ?? [];
  if (sizeWidth && sizeHeight) return bounded(Number(sizeWidth), Number(sizeHeight));
  const long = resolutions[String(resolution)] ?? longSide;
  const [, across, up] = /^(\d+):(\d+)$/.exec(String(ratio)) ?? [];
  if (!across || !up) return bounded(long, long);
  const scale = long / Math.max(Number(across), Number(up));
  return bounded(Number(across) * scale, Number(up) * scale);
}

function bounded(width: number, height: number) {
  const within = (side: number) => Math.round(Math.min(Math.max(side, bounds.min), bounds.max));
  return { width: within(width), height: within(height) };
}
