// A sample film: it begins with the picture that was given, or else with one of what the prompt says, and comes closer.
import type { ModelInput } from "../models/model.ts";
import { findGivenPicture } from "./given/given-picture.ts";
import { type Shape, sizeOf } from "./image.ts";
import { blockSide } from "./media/h264.ts";
import { render } from "./media/render.ts";
import { promptOf, type Sample } from "./sample.ts";

/** A frame's samples are stored as they are, a byte and a half each: it stays small. */
const longSide = 512;
const leastSide = 64;
const wide = { width: 16, height: 9 };
const seconds = { least: 1, most: 10, usual: 2 } as const;

export const sampleVideo: Sample = async (model, input, context) => {
  const given = await findGivenPicture(model, input, context);
  const size = frameOf(sizeOf(input, given ?? wide));
  const { bytes, contentType } = render({
    format: "mp4",
    prompt: promptOf(input),
    seed: Number(input["seed"] ?? 0),
    seconds: secondsOf(input),
    given,
    ...size,
  });
  const video_url = await context.putMedia({ bytes, contentType, extension: "mp4" });
  return { video_url, cost: model.reserve(input) / 1e6 };
};

/** The same shape, in whole blocks. */
function frameOf({ width, height }: Shape): Shape {
  const scale = longSide / Math.max(width, height);
  const side = (length: number) => Math.max(leastSide, Math.round((length * scale) / blockSide) * blockSide);
  return { width: side(width), height: side(height) };
}

function secondsOf({ duration }: ModelInput): number {
  const asked = typeof duration === "number" ? duration : seconds.usual;
  return Math.min(seconds.most, Math.max(seconds.least, asked));
}
