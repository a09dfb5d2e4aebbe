// FLUX.1 by Black Forest Labs: pictures by the megapixel; Kontext edits at a price an image.
import * as z from "zod";
import { image, imageEdit } from "./define.ts";
import { between, integer, media, negativePrompt, prompt, safetyChecker, seed, size } from "./inputs.ts";
import { perImage, perMegapixel } from "./money.ts";

const LONGEST_SIDE = 1536;

/** A preference, not a rule: a widely used client sends 1328 by default. */
const side = () => integer(256, LONGEST_SIDE).describe("Pixels, best a multiple of 64.").default(1024);

const drawn = (steps: z.ZodType) => ({
  prompt: prompt(),
  negative_prompt: negativePrompt(),
  width: side(),
  height: side(),
  num_inference_steps: steps,
  guidance: between(0, 10).default(7.5),
  seed: seed(),
  image_format: z.enum(["png", "jpeg"]).default("jpeg"),
});

export const flux = [
  image({
    id: "black-forest-labs-flux-1-dev",
    title: "Flux Dev",
    price: "$0.02 per megapixel",
    charge: perMegapixel(0.02, LONGEST_SIDE),
    input: () => drawn(integer(1, 50).default(28)),
  }),
  image({
    id: "black-forest-labs-flux-1-schnell",
    title: "Flux Schnell",
    price: "$0.0024 per megapixel",
    charge: perMegapixel(0.0024, LONGEST_SIDE),
    input: () => drawn(integer(1, 8).default(4)),
  }),
  imageEdit({
    id: "black-forest-labs-flux-1-kontext-dev",
    title: "Flux Kontext Dev",
    price: "$0.025 per image",
    charge: perImage(0.025),
    input: () => ({
      prompt: prompt(),
      image: media(),
      negative_prompt: negativePrompt(),
      size: size().default("1024*1024"),
      num_inference_steps: integer(1, 50).default(28),
      guidance: between(0, 10).default(2),
      seed: seed(),
      output_format: z.enum(["png", "jpeg"]).default("png"),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
