// InfiniteTalk: a portrait that speaks an audio track; takes no seed.
import * as z from "zod";
import { video } from "./define.ts";
import { media, prompt, safetyChecker } from "./inputs.ts";
import { upTo } from "./money.ts";

export const infinitetalk = [
  video({
    id: "infinitetalk",
    title: "InfiniteTalk",
    price: "$0.25–$0.50 per video",
    charge: upTo(0.5),
    input: () => ({
      prompt: prompt(),
      image: media(),
      audio: media("audio"),
      size: z.enum(["480p", "720p"]),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
