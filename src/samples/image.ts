// A sample picture, in the size and format that the model was asked for; where one was given, that one, in another light.
import type { ModelInput } from "../models/model.ts";
import { findGivenPicture } from "./given/given-picture.ts";
import { render } from "./media/render.ts";
import { promptOf, type Sample } from "./sample.ts";

const longSide = 1024;
const bounds = { min: 64, max: 2048 };
const square = { width: 1, height: 1 };
const formats = ["png", "jpeg", "webp"] as const;
const resolutions: Record<string, number> = { "1k": 1024, "2k": 1536, "4k": 2048 };

export const sampleImage: Sample = async (model, input, context) => {
  const given = await findGivenPicture(model, input, context);
  const asked = input["image_format"] ?? input["output_format"] ?? "png";
  const known = formats.find((one) => one === asked) ?? "png";
  // There is no encoder of WebP here, only one picture in it.
  const format = known === "webp" && given ? "png" : known;
  const picture = { prompt: promptOf(input), seed: seedOf(input), given, ...sizeOf(input, given ?? square) };
  const { bytes, contentType } = render({ format, ...picture });
  const image_url = await context.putMedia({ bytes, contentType, extension: format === "jpeg" ? "jpg" : format });
  return { image_url, cost: model.reserve(input) / 1e6 };
};

/** Without a seed each call draws another picture. */
function seedOf(input: ModelInput): number {
  const seed = input["seed"];
  return typeof seed === "number" && seed >= 0 ? seed : (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);
}

export interface Shape {
  readonly width: number;
  readonly height: number;
}

/** `width` and `height`, or `size` as 1024*768, or `aspect_ratio` with `resolution`; else the shape that is expected. */
export function sizeOf(input: ModelInput, expected: Shape): Shape {
  const { width, height, size, aspect_ratio: ratio, resolution } = input;
  if (typeof width === "number" && typeof height === "number") return bounded(width, height);
  const [, sizeWidth, sizeHeight] = /^(\d+)\*(\d+)$/.exec(String(size)) ?? [];
  if (sizeWidth && sizeHeight) return bounded(Number(sizeWidth), Number(sizeHeight));
  const long = resolutions[String(resolution)] ?? longSide;
  const [, ...sides] = /^(\d+):(\d+)$/.exec(String(ratio)) ?? [];
  const [across = expected.width, up = expected.height] = sides.map(Number);
  const scale = long / Math.max(across, up);
  return bounded(across * scale, up * scale);
}

function bounded(width: number, height: number) {
  const within = (side: number) => Math.round(Math.min(Math.max(side, bounds.min), bounds.max));
  return { width: within(width), height: within(height) };
}
