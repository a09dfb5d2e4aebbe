// P-Image and P-Video by Pruna: quick pictures, edits and clips.
import * as z from "zod";
import { image, imageEdit, video } from "./define.ts";
import { media, mediaList, prompt, seconds, seed, unsetSeed } from "./inputs.ts";
import { perImage, perSecond, rates } from "./money.ts";

const LONGEST_SECONDS = 20;

const uncheckedSafety = () => z.boolean().default(false);

export const pruna = [
  image({
    id: "p-image-t2i",
    title: "P-Image T2I",
    price: "$0.005 per image",
    charge: perImage(0.005),
    input: () => ({
      prompt: prompt(),
      aspect_ratio: z.enum(["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"]).default("16:9"),
      seed: unsetSeed(),
      disable_safety_checker: uncheckedSafety(),
    }),
  }),
  imageEdit({
    id: "p-image-edit",
    title: "P-Image Edit",
    price: "$0.01 per image",
    charge: perImage(0.01),
    input: () => ({
      prompt: prompt(),
      images: mediaList(),
      aspect_ratio: z
        .enum(["match_input_image", "1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"])
        .default("match_input_image"),
      seed: seed(),
      disable_safety_checker: uncheckedSafety(),
    }),
  }),
  video({
    id: "p-video",
    title: "Pruna Video",
    price: "$0.02/s (720p), $0.04/s (1080p)",
    charge: perSecond(rates("resolution", { "720p": 0.02, "1080p": 0.04 }), LONGEST_SECONDS),
    input: () => ({
      prompt: prompt(),
      image: media().optional(),
      audio: media("audio").optional(),
      duration: seconds(LONGEST_SECONDS).default(5),
      resolution: z.enum(["720p", "1080p"]).default("720p"),
      fps: z.literal([24, 48]).default(24),
      aspect_ratio: z.enum(["16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "1:1"]).default("16:9"),
      seed: unsetSeed(),
      draft: z.boolean().default(false),
      save_audio: z.boolean().default(true),
      prompt_upsampling: z.boolean().default(true),
    }),
  }),
];
