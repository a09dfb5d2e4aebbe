// Chatterbox by Resemble AI: speech by the second of audio, in a stock voice or one cloned from a recording.
import * as z from "zod";
import { speech } from "./define.ts";
import { media, prompt } from "./inputs.ts";
import { perSecondOfSpeech } from "./money.ts";

const LONGEST_TEXT = 5000;

// biome-ignore format: a list of names reads better as a paragraph
const voices = [
  "aaron", "abigail", "anaya", "andy", "archer", "brian", "chloe", "dylan", "emmanuel", "ethan", "evelyn", "gavin",
  "gordon", "ivan", "laura", "lucy", "madison", "marisol", "meera", "walter",
] as const;

export const chatterbox = [
  speech({
    id: "chatterbox-turbo",
    title: "Chatterbox Turbo",
    price: "$0.001 per second",
    charge: perSecondOfSpeech(0.001, LONGEST_TEXT),
    input: () => ({
      prompt: prompt(LONGEST_TEXT),
      voice: z.enum(voices).default("lucy"),
      voice_url: media("audio").optional(),
      format: z.enum(["wav", "flac", "ogg"]).default("wav"),
    }),
  }),
];
