// Seedream 4 by ByteDance: makes and edits pictures at a price an image. Only the one that makes them takes a seed.
import { image, imageEdit } from "./define.ts";
import { mediaList, negativePrompt, prompt, safetyChecker, seed, size } from "./inputs.ts";
import { perImage } from "./money.ts";

export const seedream = [
  image({
    id: "seedream-v4-t2i",
    title: "Seedream 4.0 T2I",
    price: "$0.027 per image",
    charge: perImage(0.027),
    input: () => ({
      prompt: prompt(),
      negative_prompt: negativePrompt(),
      size: size().default("1024*1024"),
      seed: seed(),
      enable_safety_checker: safetyChecker(),
    }),
  }),
  imageEdit({
    id: "seedream-v4-edit",
    title: "Seedream 4.0 Edit",
    price: "$0.027 per image",
    charge: perImage(0.027),
    input: () => ({
      prompt: prompt(),
      images: mediaList(),
      size: size().default("1024*1024"),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
