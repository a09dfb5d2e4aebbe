// A sample video: one small bundled film, whatever was asked for.

import { seedOf, sizeOf } from "./image.ts";
import { render } from "./media/render.ts";
import { promptOf, type Sample } from "./run.ts";

export const sampleVideo: Sample = async (model, input, { putMedia }) => {
  const { bytes, contentType } = await render("mp4", {
    prompt: promptOf(input),
    seed: seedOf(input),
    ...sizeOf(input),
  });
  return { video_url: await putMedia({ bytes, contentType, extension: "mp4" }), cost: model.reserve(input) / 1e6 };
};
