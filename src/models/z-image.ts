// Z-Image Turbo by Alibaba: the cheapest picture of a fixed price.
import * as z from "zod";
import { image } from "./define.ts";
import { between, media, prompt, safetyChecker, seed, size } from "./inputs.ts";
import { perImage } from "./money.ts";

export const zImage = [
  image({
    id: "z-image-turbo",
    title: "Z-Image Turbo",
    price: "$0.005 per image",
    charge: perImage(0.005),
    input: () => ({
      prompt: prompt(),
      image: media().optional(),
      size: size(
        "512*512",
        "768*768",
        "1024*1024",
        "1280*1280",
        "1024*768",
        "768*1024",
        "1280*720",
        "720*1280",
      ).default("1024*1024"),
      strength: between(0, 1).default(0.8),
      seed: seed(),
      output_format: z.enum(["png", "jpeg", "webp"]).default("png"),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
