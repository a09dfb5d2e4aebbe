// Qwen3 by Alibaba: text from a bare prompt.
import { text } from "./define.ts";
import { perMillionTokens } from "./money.ts";
import { completion, LONGEST_ANSWER } from "./text-inputs.ts";

export const qwen3 = [
  text({
    id: "qwen3-32b-awq",
    title: "Qwen3 32B AWQ",
    price: "$10.00 per 1M tokens",
    charge: perMillionTokens({ inputUsd: 10, outputUsd: 10, windowTokens: 131_072, longestAnswer: LONGEST_ANSWER }),
    input: completion,
  }),
];
