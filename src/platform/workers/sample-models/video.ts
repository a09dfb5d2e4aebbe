// A sample video: one small bundled film, whatever was asked for.
import { render } from "./media/render.ts";
import type { Sample } from "./run.ts";

export const sampleVideo: Sample = async (model, input, { putMedia }) => {
  const { bytes, contentType } = await render({ format: "mp4" });
  return { video_url: await putMedia({ bytes, contentType, extension: "mp4" }), cost: model.reserve(input) / 1e6 };
};
