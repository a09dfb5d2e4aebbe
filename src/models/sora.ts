// Sora 2 by OpenAI: a picture set in motion; takes no seed.
import * as z from "zod";
import { video } from "./define.ts";
import { media, prompt, seconds } from "./inputs.ts";
import { upTo } from "./money.ts";

/** What the top of both price ranges buys. */
const LONGEST_SECONDS = 12;

export const sora = [
  video({
    id: "sora-2-i2v",
    title: "SORA 2 I2V",
    price: "$0.40–$1.20 per video",
    charge: upTo(1.2),
    input: () => ({ prompt: prompt(), image: media(), duration: seconds(LONGEST_SECONDS) }),
  }),
  video({
    id: "sora-2-pro-i2v",
    title: "SORA 2 Pro I2V",
    price: "$1.20–$6.00 per video",
    charge: upTo(6),
    input: () => ({
      prompt: prompt(),
      image: media(),
      size: z
        .string()
        .max(11)
        .regex(/^(\d{3,4}p|\d{2,5}\*\d{2,5})$/, "expected a resolution such as 720p, or WIDTH*HEIGHT")
        .meta({ description: "A resolution such as 720p, or WIDTH*HEIGHT.", examples: ["720p", "1080p"] })
        .default("720p"),
      duration: seconds(LONGEST_SECONDS),
    }),
  }),
];
