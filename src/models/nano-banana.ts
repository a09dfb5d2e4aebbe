// Nano Banana by Google: edits up to 14 pictures at once; takes no seed.
import * as z from "zod";
import { imageEdit } from "./define.ts";
import { mediaList, prompt, safetyChecker } from "./inputs.ts";
import { perImage, rates, upTo } from "./money.ts";

const resolution = () => z.enum(["1k", "2k", "4k"]);
const format = () => z.enum(["png", "jpeg"]).default("png");

export const nanoBanana = [
  imageEdit({
    id: "nano-banana-edit",
    title: "Nano Banana Edit",
    price: "$0.038 per image",
    charge: perImage(0.038),
    input: () => ({ prompt: prompt(), images: mediaList(4), enable_safety_checker: safetyChecker() }),
  }),
  imageEdit({
    id: "google-nano-banana-2-edit",
    title: "Nano Banana 2 Edit",
    price: "$0.0875 (1K), $0.13 (2K), $0.175 (4K)",
    charge: perImage(rates("resolution", { "1k": 0.0875, "2k": 0.13, "4k": 0.175 })),
    input: () => ({
      images: mediaList(14),
      prompt: prompt(),
      resolution: resolution().default("1k"),
      aspect_ratio: z.enum(["1:1", "3:2", "16:9", "9:16", "4:5"]).optional(),
      output_format: format(),
      enable_base64_output: z.boolean().default(false),
    }),
  }),
  imageEdit({
    id: "nano-banana-pro-edit",
    title: "Nano Banana Pro Edit",
    price: "$0.14–$0.24 per image",
    charge: upTo(0.24),
    input: () => ({
      prompt: prompt(),
      images: mediaList(14),
      resolution: resolution().default("2k"),
      aspect_ratio: z.enum(["1:1", "3:2", "2:3", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"]).default("1:1"),
      output_format: format(),
      enable_safety_checker: safetyChecker(),
    }),
  }),
];
