// Granite by IBM: text from messages.
import { text } from "./define.ts";
import { between, seed } from "./inputs.ts";
import { perMillionTokens } from "./money.ts";
import { LONGEST_ANSWER, maxTokens, messages, samplingParams, topK, topP } from "./text-inputs.ts";

export const granite = [
  text({
    id: "granite-4-0-h-small",
    title: "IBM Granite 4.0",
    price: "$10.00 per 1M tokens",
    charge: perMillionTokens({ inputUsd: 10, outputUsd: 10, windowTokens: 131_072, longestAnswer: LONGEST_ANSWER }),
    input: () => ({
      messages: messages(),
      sampling_params: samplingParams({
        max_tokens: maxTokens().default(512),
        temperature: between(0, 1).default(0.7),
        seed: seed(),
        top_k: topK().default(-1),
        top_p: topP().default(1),
      }),
    }),
  }),
];
