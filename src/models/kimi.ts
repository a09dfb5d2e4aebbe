// Kimi by Moonshot: three models behind one id, chosen by the input.
import * as z from "zod";
import { text } from "./define.ts";
import { between, unsetSeed } from "./inputs.ts";
import { perMillionTokens } from "./money.ts";
import { LONGEST_ANSWER, maxTokens, messages, samplingParams, topK, topP } from "./text-inputs.ts";

export const kimi = [
  // The docs do not say which of the three costs what: the top of both ranges counts.
  text({
    id: "moonshot-kimi",
    title: "Moonshot Kimi",
    price: "$4.00–$15.00 per 1M output tokens, $0.95–$3.00 per 1M input tokens",
    charge: perMillionTokens({ inputUsd: 3, outputUsd: 15, windowTokens: 1_048_576, longestAnswer: LONGEST_ANSWER }),
    input: () => ({
      messages: messages(),
      model: z.enum(["kimi-k2.6", "kimi-k2.7-code", "kimi-k3"]).default("kimi-k2.6"),
      sampling_params: samplingParams({
        max_tokens: maxTokens().default(2048),
        temperature: between(0, 2).default(1),
        seed: unsetSeed(),
        top_k: topK().optional(),
        top_p: topP().optional(),
      }),
    }),
  }),
];
