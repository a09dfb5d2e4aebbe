// Reads the cost that an answer states. A cost far above the estimate is believed, an impossible one is not.
import { isObject } from "../json/is-object.ts";
import { microUsd } from "../micro-usd.ts";
import type { TokenPrice } from "./model.ts";
import type { Price } from "./money.ts";

/** Media answers are an object, text answers an array of objects, OpenAI-like bodies an object with `usage`. */
export function costOf(output: unknown, price: Price): number | undefined {
  const answers = (Array.isArray(output) ? output : [output]).filter(isObject);
  const said = answers.map((answer) => answer["cost"]).find((cost) => cost !== undefined && cost !== null);
  if (said !== undefined) return amount(said);
  return price.tokens && costOfUsage(answers, price.tokens);
}

function amount(cost: unknown): number | undefined {
  if (typeof cost !== "number" || !(cost >= 0)) return undefined;
  return whole(microUsd(cost));
}

/** Adding zero turns −0 into 0. */
const whole = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value + 0 : undefined;

/** A streamed answer counts its tokens chunk by chunk. */
function costOfUsage(answers: Answer[], price: TokenPrice): number | undefined {
  const usages = answers.map((answer) => answer["usage"]).filter(isObject);
  if (usages.length === 0 || !usages.every(countsTokens)) return undefined;
  const input = sum(usages.map((usage) => tokens(usage, ...inputNames)));
  const output = sum(usages.map((usage) => tokens(usage, ...outputNames)));
  return input === undefined || output === undefined ? undefined : whole(price.cost(input, output));
}

const inputNames = ["input", "prompt_tokens", "input_tokens"];
const outputNames = ["output", "completion_tokens", "output_tokens"];

/** Undefined if no known count is named. */
function countsTokens(usage: Answer): boolean {
  return [...inputNames, ...outputNames].some((name) => usage[name] !== undefined);
}

/** The same count under the name that this dialect has for it; an embedding, say, has no output at all. */
function tokens(usage: Answer, ...names: string[]): number | undefined {
  const name = names.find((candidate) => usage[candidate] !== undefined);
  return name === undefined ? 0 : whole(usage[name]);
}

const sum = (counts: (number | undefined)[]): number | undefined =>
  counts.reduce((total, count) => (total === undefined || count === undefined ? undefined : total + count), 0);

type Answer = Readonly<Record<string, unknown>>;
