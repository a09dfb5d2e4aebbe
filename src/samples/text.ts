// Sample text: sentences that say what they are, token by token, with usage and cost.
import type { Model, ModelInput } from "../models/model.ts";
import { promptOf, type Sample } from "./sample.ts";

const defaultMaxTokens = 512;
const charactersPerToken = 4;

export interface Generated {
  readonly tokens: readonly string[];
  readonly usage: { readonly input: number; readonly output: number };
  /** In USD; undefined where the catalog names no price for tokens. */
  readonly cost: number | undefined;
}

export const sampleText: Sample = async (model, input, { emit, rest }) => {
  const { tokens, usage, cost } = generate(model, promptOf(input), samplingOf(input));
  for (const [index, token] of tokens.entries()) {
    await rest(1 / tokens.length);
    const counts = { input_tokens: usage.input, output_tokens: index + 1 };
    emit({ ...counts, text: [token], metrics: { ...counts, stream_index: index } });
  }
  return [{ choices: [{ tokens: [tokens.join("")] }], cost, usage }];
};

interface Sampling {
  readonly maxTokens: number;
  readonly stop: string | undefined;
}

function samplingOf(input: ModelInput): Sampling {
  const nested = (input["sampling_params"] ?? {}) as Record<string, unknown>;
  const maxTokens = Number(nested["max_tokens"] ?? input["max_tokens"] ?? defaultMaxTokens);
  return { maxTokens, stop: typeof input["stop"] === "string" ? input["stop"] : undefined };
}

/** The same prompt gives the same text. */
export function generate(model: Model, prompt: string, { maxTokens, stop }: Sampling): Generated {
  const said = prompt.trim().replace(/\s+/g, " ").slice(0, 200);
  const whole = [
    `This is a sample answer from the built-in stand-in for ${model.title}.`,
    said ? `You wrote: “${said}”.` : "You wrote nothing.",
    "Attach a worker, or set an upstream, and a real model answers here in the same shape.",
  ].join(" ");
  const text = stop ? (whole.split(stop)[0] ?? "") : whole;
  const tokens = (text.match(/\s*\S+/g) ?? []).slice(0, Math.max(1, maxTokens));
  const usage = { input: Math.ceil(prompt.length / charactersPerToken), output: tokens.length };
  return { tokens, usage, cost: costOf(model, usage) };
}

/** In USD; undefined where the catalog names no price for tokens. */
export function costOf({ tokens }: Model, { input, output }: Generated["usage"]): number | undefined {
  return tokens && tokens.cost(input, output) / 1e6;
}
