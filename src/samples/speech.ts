// Sample speech: a sound as long as the text would take to say, in its rhythm.
import { render } from "./media/render.ts";
import { promptOf, type Sample } from "./sample.ts";

const formats = ["wav", "flac", "ogg"] as const;

export const sampleSpeech: Sample = async (model, input, { putMedia }) => {
  const format = formats.find((known) => known === input["format"]) ?? "wav";
  const voice = String(input["voice"] ?? input["voice_id"] ?? "");
  const speed = typeof input["speed"] === "number" ? input["speed"] : 1;
  const { bytes, contentType } = render({ format, text: promptOf(input), voice, speed });
  return { audio_url: await putMedia({ bytes, contentType, extension: format }), cost: model.reserve(input) / 1e6 };
};
