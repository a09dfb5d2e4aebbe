// Speech 02 by MiniMax: speech by the character, with mood and pace.
import * as z from "zod";
import { speech } from "./define.ts";
import { media, name, prompt } from "./inputs.ts";
import { perThousandCharacters } from "./money.ts";

const LONGEST_TEXT = 10_000;

export const minimax = [
  speech({
    id: "minimax-speech-02-hd",
    title: "Minimax Speech 02 HD",
    price: "$0.05 per 1000 characters",
    charge: perThousandCharacters(0.05, LONGEST_TEXT),
    input: () => ({
      prompt: prompt(LONGEST_TEXT),
      voice_id: name().default("Wise_Woman"),
      speed: z.number().default(1),
      volume: z.number().default(1),
      pitch: z.number().default(0),
      emotion: z.enum(["happy", "sad", "neutral", "angry", "fearful", "surprised"]).default("neutral"),
      english_normalization: z.boolean().default(false),
      default_audio_url: media("audio").optional(),
    }),
  }),
];
