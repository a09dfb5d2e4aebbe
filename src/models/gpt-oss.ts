// GPT-OSS by OpenAI: text from a bare prompt.
import { text } from "./define.ts";
import { perMillionTokens } from "./money.ts";
import { completion, LONGEST_ANSWER } from "./text-inputs.ts";

export const gptOss = [
  text({
    id: "gpt-oss-120b",
    title: "GPT-OSS 120B",
    price: "$10.00 per 1M tokens",
    charge: perMillionTokens({ inputUsd: 10, outputUsd: 10, windowTokens: 131_072, longestAnswer: LONGEST_ANSWER }),
    input: completion,
  }),
];
