// Vidu Q3 by Shengshu: clips from a picture or a text, with sound and music.
import * as z from "zod";
import { video } from "./define.ts";
import { media, prompt, seconds, seed } from "./inputs.ts";
import { perSecond } from "./money.ts";

const LONGEST_SECONDS = 16;

const resolution = () => z.enum(["540p", "720p", "1080p"]).default("720p");
const duration = () => seconds(LONGEST_SECONDS).default(5);
const movement = () => z.enum(["auto", "small", "medium", "large"]).default("auto");

const sounding = () => ({
  movement_amplitude: movement(),
  generate_audio: z.boolean().default(true),
  bgm: z.boolean().default(true),
  seed: seed(),
});

export const vidu = [
  video({
    id: "vidu-q3-i2v",
    title: "Vidu Q3 I2V",
    price: "$0.15 per second",
    charge: perSecond(0.15, LONGEST_SECONDS),
    input: () => ({
      image: media(),
      prompt: prompt(),
      resolution: resolution(),
      duration: duration(),
      ...sounding(),
    }),
  }),
  video({
    id: "vidu-q3-t2v",
    title: "Vidu Q3 T2V",
    price: "$0.15 per second",
    charge: perSecond(0.15, LONGEST_SECONDS),
    input: () => ({
      prompt: prompt(),
      style: z.enum(["general", "anime"]).default("general"),
      resolution: resolution(),
      duration: duration(),
      aspect_ratio: z.enum(["16:9", "9:16", "4:3", "3:4", "1:1"]).default("4:3"),
      ...sounding(),
    }),
  }),
];
