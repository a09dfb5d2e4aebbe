// Seedance by ByteDance: a picture set in motion, with sound if wanted.
import * as z from "zod";
import { video } from "./define.ts";
import { integer, media, prompt, seed } from "./inputs.ts";
import { perSecond } from "./money.ts";

const LONGEST_SECONDS = 12;

export const seedance = [
  // The docs do not say what resolution and sound do to the price of a second: the top of its range counts.
  video({
    id: "seedance-v1-5-pro-i2v",
    title: "Seedance 1.5 Pro I2V",
    price: "$0.024–$0.052 per second",
    charge: perSecond(0.052, LONGEST_SECONDS),
    input: () => ({
      prompt: prompt(),
      image: media(),
      last_image: media().optional(),
      duration: integer(4, LONGEST_SECONDS).default(5),
      resolution: z.enum(["480p", "720p"]).default("720p"),
      aspect_ratio: z.enum(["21:9", "16:9", "9:16", "1:1", "4:3", "3:4"]).default("16:9"),
      camera_fixed: z.boolean().default(false),
      generate_audio: z.boolean().default(false),
      seed: seed(),
    }),
  }),
];
