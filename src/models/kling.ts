// Kling by Kuaishou: clips from a picture, from reference pictures, or from a picture moved like a video.
import * as z from "zod";
import { video } from "./define.ts";
import { media, mediaList, negativePrompt, prompt, safetyChecker, seconds, seed } from "./inputs.ts";
import { perFiveSeconds, perSecond, perVideo, rates } from "./money.ts";

const LONGEST_SECONDS = 10;

export const kling = [
  video({
    id: "kling-v2-1-i2v-pro",
    title: "Kling v2.1 I2V Pro",
    price: "$0.45 per 5 seconds",
    charge: perFiveSeconds(0.45, LONGEST_SECONDS),
    input: () => ({
      prompt: prompt(),
      image: media(),
      negative_prompt: negativePrompt(),
      guidance_scale: z.number().default(0.5),
      duration: seconds(LONGEST_SECONDS).default(5),
      enable_safety_checker: safetyChecker(),
    }),
  }),
  // The documented range has no top: $0.07 a second of the video that is followed. It is followed for up to 10 s when the
  // picture gives the orientation, for up to 30 s when the video does.
  video({
    id: "kling-v2-6-std-motion-control",
    title: "Kling v2.6 Motion Control",
    price: "$0.21–$0.63+ per video",
    charge: perVideo(rates("character_orientation", { image: 0.7, video: 2.1 })),
    input: () => ({
      image: media(),
      video: media("video"),
      character_orientation: z.enum(["video", "image"]),
      prompt: prompt().optional(),
      negative_prompt: negativePrompt(),
      keep_original_sound: z.boolean().default(true),
    }),
  }),
  video({
    id: "kling-video-o1-r2v",
    title: "Kling Video O1 R2V",
    price: "$0.112 per second",
    charge: perSecond(0.112, LONGEST_SECONDS),
    input: () => ({
      prompt: prompt(),
      images: mediaList(10),
      video: media("video").optional(),
      negative_prompt: negativePrompt(),
      aspect_ratio: z.enum(["16:9", "9:16", "1:1"]).default("16:9"),
      duration: seconds(LONGEST_SECONDS).default(5),
      seed: seed(),
      enable_prompt_expansion: z.boolean().default(false),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
