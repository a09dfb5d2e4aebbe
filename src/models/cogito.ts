// Cogito by Deep Cogito: text from a bare prompt.
import { text } from "./define.ts";
import { perMillionTokens } from "./money.ts";
import { completion, LONGEST_ANSWER } from "./text-inputs.ts";

export const cogito = [
  text({
    id: "cogito-671b-v2-1-fp8-dynamic",
    title: "Cogito 671B v2.1",
    price: "$0.50 per 1M tokens",
    charge: perMillionTokens({ inputUsd: 0.5, outputUsd: 0.5, windowTokens: 131_072, longestAnswer: LONGEST_ANSWER }),
    input: completion,
  }),
];
