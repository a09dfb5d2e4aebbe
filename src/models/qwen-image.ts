// Qwen Image by Alibaba: makes and edits pictures, with or without LoRAs, at a price an image.
import * as z from "zod";
import { image, imageEdit } from "./define.ts";
import { loras, media, mediaList, negativePrompt, prompt, safetyChecker, seed, size } from "./inputs.ts";
import { perImage } from "./money.ts";

const editSize = () =>
  size("1024*1024", "1024*1280", "1280*1024", "1280*1280", "1280*1536", "1536*1080").default("1024*1024");

const edited = () => ({
  size: editSize(),
  seed: seed(),
  output_format: z.enum(["jpeg", "png", "webp"]).default("jpeg"),
});
const drawn = () => ({
  size: size().default("1024*1024"),
  seed: seed(),
  enable_safety_checker: safetyChecker(),
});

export const qwenImage = [
  image({
    id: "qwen-image-t2i",
    title: "Qwen Image",
    price: "$0.02 per image",
    charge: perImage(0.02),
    input: () => ({
      prompt: prompt(),
      negative_prompt: negativePrompt(),
      ...drawn(),
    }),
  }),
  image({
    id: "qwen-image-t2i-lora",
    title: "Qwen Image LoRA",
    price: "$0.025 per image",
    charge: perImage(0.025),
    input: () => ({
      prompt: prompt(),
      loras: loras(),
      ...drawn(),
    }),
  }),
  imageEdit({
    id: "qwen-image-edit",
    title: "Qwen Image Edit",
    price: "$0.02 per image",
    charge: perImage(0.02),
    input: () => ({
      prompt: prompt(),
      image: media(),
      negative_prompt: negativePrompt(),
      seed: seed(),
      output_format: z.enum(["png", "jpeg"]).default("jpeg"),
      enable_safety_checker: safetyChecker(),
    }),
  }),
  imageEdit({
    id: "qwen-image-edit-2511",
    title: "Qwen Image Edit 2511",
    price: "$0.02 per image",
    charge: perImage(0.02),
    input: () => ({
      prompt: prompt(),
      images: mediaList(),
      ...edited(),
    }),
  }),
  imageEdit({
    id: "qwen-image-edit-2511-lora",
    title: "Qwen Image Edit 2511 LoRA",
    price: "$0.025 per image",
    charge: perImage(0.025),
    input: () => ({
      prompt: prompt(),
      images: mediaList(),
      loras: loras(),
      ...edited(),
    }),
  }),
];
