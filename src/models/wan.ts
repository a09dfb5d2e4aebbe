// WAN by Alibaba: clips from a picture or a text, and one model for pictures.
import * as z from "zod";
import { image, video } from "./define.ts";
import {
  between,
  integer,
  loras,
  media,
  negativePrompt,
  prompt,
  safetyChecker,
  seconds,
  seed,
  size,
} from "./inputs.ts";
import { perFiveSeconds, perImage, perSecond, rates, upTo } from "./money.ts";

/** The docs give no longest clip; the top of a price range over its price a second does. */
const LONGEST_SECONDS = { "2.1": 10, "2.2": 15, "2.2 LoRA": 8, "2.5": 10, "2.6": 15 };

const duration = () => z.literal([5, 10, LONGEST_SECONDS["2.6"]]).default(5);
const shotType = () => z.enum(["single", "multi"]).default("single");
const expansion = () => z.boolean().default(false);

const fromPicture = (longestSeconds: number) => ({
  prompt: prompt(),
  image: media(),
  negative_prompt: negativePrompt(),
  size: size().default("1280*720"),
  num_inference_steps: integer(1, 50).default(30),
  guidance: between(0, 10).default(5),
  duration: seconds(longestSeconds).default(5),
  flow_shift: z.int().default(5),
  seed: seed(),
  enable_prompt_optimization: z.boolean().default(false),
  enable_safety_checker: safetyChecker(),
});

export const wan = [
  video({
    id: "wan-2-1-i2v-720",
    title: "WAN 2.1 I2V 720p",
    price: "$0.30 per 5 seconds of video",
    charge: perFiveSeconds(0.3, LONGEST_SECONDS["2.1"]),
    input: () => fromPicture(LONGEST_SECONDS["2.1"]),
  }),
  video({
    id: "wan-2-2-i2v-720",
    title: "WAN 2.2 I2V 720p",
    price: "$0.30–$0.90 per video",
    charge: upTo(0.9),
    input: () => fromPicture(LONGEST_SECONDS["2.2"]),
  }),
  // Its id says text to video, its title and its inputs say picture to video: the id is what calls it.
  video({
    id: "wan-2-2-t2v-720-lora",
    title: "WAN 2.2 I2V 720p LoRA",
    price: "$0.35–$0.56 per video",
    charge: upTo(0.56),
    input: () => ({
      prompt: prompt(),
      image: media(),
      high_noise_loras: loras(),
      low_noise_loras: loras(),
      duration: seconds(LONGEST_SECONDS["2.2 LoRA"]).default(5),
      seed: seed(),
      enable_safety_checker: safetyChecker(),
    }),
  }),
  video({
    id: "wan-2-5",
    title: "WAN 2.5",
    price: "$0.25–$1.50 per video",
    charge: upTo(1.5),
    input: () => ({
      prompt: prompt(),
      image: media(),
      negative_prompt: negativePrompt(),
      size: size().default("1280*720"),
      duration: seconds(LONGEST_SECONDS["2.5"]).default(5),
      seed: seed(),
      enable_prompt_expansion: expansion(),
      enable_safety_checker: safetyChecker(),
    }),
  }),
  video({
    id: "wan-2-6-i2v",
    title: "WAN 2.6 I2V",
    price: "$0.10/s (720p), $0.15/s (1080p)",
    charge: perSecond(rates("size", { "1280*720": 0.1, "1920*1080": 0.15 }), LONGEST_SECONDS["2.6"]),
    input: () => ({
      prompt: prompt(),
      image: media(),
      audio: media("audio").optional(),
      negative_prompt: negativePrompt(),
      size: z.enum(["1280*720", "1920*1080"]).default("1280*720"),
      duration: duration(),
      shot_type: shotType(),
      seed: seed(),
      enable_prompt_expansion: expansion(),
      enable_safety_checker: safetyChecker(),
    }),
  }),
  video({
    id: "wan-2-6-t2v",
    title: "WAN 2.6 T2V",
    price: "$0.50–$2.25 per video",
    charge: upTo(2.25),
    input: () => ({
      prompt: prompt(),
      negative_prompt: negativePrompt(),
      duration: duration(),
      size: z.enum(["1280*720", "1920*1080", "720*1280", "1080*1920"]).default("1280*720"),
      shot_type: shotType(),
      seed: seed(),
      enable_prompt_expansion: expansion(),
      audio: media("audio").optional(),
    }),
  }),
  image({
    id: "wan-2-6-t2i",
    title: "WAN 2.6 T2I",
    price: "$0.03 per image",
    charge: perImage(0.03),
    input: () => ({
      prompt: prompt(),
      size: size("1024*1024", "1024*768", "1440*1024").default("1024*1024"),
      seed: seed(),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
