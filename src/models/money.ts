// How models are paid: each price as documented, turned into what to reserve for an input. Micro-USD, whole numbers.
import { microUsd } from "../micro-usd.ts";
import { type ListedPrice, type ModelInput, type TokenPrice, Unread } from "./model.ts";
import { isCount } from "./multipliers.ts";

export interface Price {
  /** What this input costs at most; the exact price where that is a function of the input. */
  reserve(input: ModelInput): number;
  /** What any accepted input costs at most. */
  readonly most: number;
  /** No input costs less. */
  readonly least: number;
  /** Only where tokens are paid for. */
  readonly tokens?: TokenPrice;
  readonly listed: ListedPrice;
}

/** One price, or one for each value of an input field. */
type Rate = number | { readonly field: string; readonly usd: Readonly<Record<string, number>> };

const MILLION = 1_000_000;

/** `rates("resolution", { "720p": 0.02, "1080p": 0.04 })` */
export const rates = (field: string, usd: Readonly<Record<string, number>>): Rate => ({ field, usd });

/** A value without a rate costs the highest rate: a reservation may be too high, never too low. */
function rateFor(rate: Rate, input: ModelInput): number {
  if (typeof rate === "number") return microUsd(rate);
  const value = input[rate.field];
  const usd = typeof value === "string" && Object.hasOwn(rate.usd, value) ? rate.usd[value] : undefined;
  return usd === undefined ? dearest(rate) : microUsd(usd);
}

const dearest = (rate: Rate): number =>
  microUsd(typeof rate === "number" ? rate : Math.max(...Object.values(rate.usd)));

const cheapest = (rate: Rate): number =>
  microUsd(typeof rate === "number" ? rate : Math.min(...Object.values(rate.usd)));

const countAt = (input: ModelInput, field: string): number | undefined => {
  const value = input[field];
  return isCount(value) ? value : undefined;
};

const lengthAt = (input: ModelInput, field: string): number | undefined => {
  const value = input[field];
  if (value instanceof Unread) return value.bytes;
  return typeof value === "string" && value !== "" ? value.length : undefined;
};

/** The rate as the catalog shows it. */
const listed = (per: ListedPrice["per"], rate: Rate): ListedPrice =>
  typeof rate === "number" ? { per, usd: rate } : { per, usdBy: { field: rate.field, values: rate.usd } };

const perJob = (per: ListedPrice["per"], rate: Rate): Price => ({
  reserve: (input) => rateFor(rate, input),
  most: dearest(rate),
  least: cheapest(rate),
  listed: listed(per, rate),
});

export const perImage = (rate: Rate): Price => perJob("image", rate);
export const perVideo = (rate: Rate): Price => perJob("video", rate);

/** The docs give a range without saying what decides: its top is reserved, and the answer states the true cost. */
export const upTo = (usd: number): Price => perJob("job", usd);

/** A megapixel is a million pixels: the reading that never reserves too little. */
export function perMegapixel(usd: number, longestSide: number): Price {
  const priceOf = (pixels: number) => Math.ceil((microUsd(usd) * pixels) / MILLION);
  return {
    reserve: (input) => priceOf((countAt(input, "width") ?? longestSide) * (countAt(input, "height") ?? longestSide)),
    most: priceOf(longestSide * longestSide),
    least: priceOf(1),
    listed: { per: "megapixel", usd },
  };
}

export function perSecond(rate: Rate, longestSeconds: number): Price {
  return {
    reserve: (input) => rateFor(rate, input) * (countAt(input, "duration") ?? longestSeconds),
    most: dearest(rate) * longestSeconds,
    least: cheapest(rate),
    listed: listed("second", rate),
  };
}

/** A block that was begun counts whole. */
export function perFiveSeconds(usd: number, longestSeconds: number): Price {
  const priceOf = (seconds: number) => microUsd(usd) * Math.ceil(seconds / 5);
  return {
    reserve: (input) => priceOf(countAt(input, "duration") ?? longestSeconds),
    most: priceOf(longestSeconds),
    least: priceOf(1),
    listed: { per: "5 seconds", usd },
  };
}

/** UTF-16 units are counted, which are never fewer than characters. */
export function perThousandCharacters(usd: number, longestText: number): Price {
  const priceOf = (characters: number) => Math.ceil((microUsd(usd) * characters) / 1000);
  return {
    reserve: (input) => priceOf(lengthAt(input, "prompt") ?? longestText),
    most: priceOf(longestText),
    least: priceOf(1),
    listed: { per: "1000 characters", usd },
  };
}

/** Slower than any speech: a digit, spelled out, is the longest thing that one character makes a voice say. */
const SLOWEST_CHARACTERS_PER_SECOND = 2;

/** The length of the audio is known only afterwards: the slowest voice and a second of silence are reserved. */
export function perSecondOfSpeech(usd: number, longestText: number): Price {
  const priceOf = (characters: number) => microUsd(usd) * (1 + Math.ceil(characters / SLOWEST_CHARACTERS_PER_SECOND));
  return {
    reserve: (input) => priceOf(lengthAt(input, "prompt") ?? longestText),
    most: priceOf(longestText),
    least: priceOf(1),
    listed: { per: "second", usd },
  };
}

/** How many tokens a chat template may add to the text. */
const TEMPLATE_TOKENS = 256;

export interface TokenRates {
  readonly inputUsd: number;
  readonly outputUsd: number;
  /** What the model reads at most, whatever was sent. */
  readonly windowTokens: number;
  /** The largest `max_tokens` that the schema accepts. */
  readonly longestAnswer: number;
}

/**
 * A token is at least a byte, so the bytes of the input bound its tokens. The whole input counts, unknown keys too: tools and
 * the like end up in the prompt.
 */
export function perMillionTokens({ inputUsd, outputUsd, windowTokens, longestAnswer }: TokenRates): Price {
  const cost = (input: number, output: number) =>
    Math.ceil((microUsd(inputUsd) * input + microUsd(outputUsd) * output) / MILLION);
  const read = (bytes: number) => Math.min(bytes + TEMPLATE_TOKENS, windowTokens);
  return {
    reserve: (input) => {
      const bytes = new TextEncoder().encode(JSON.stringify(input)).length + unreadBytes(input);
      return cost(read(bytes), answerTokens(input, longestAnswer));
    },
    most: cost(windowTokens, longestAnswer),
    least: cost(0, 1),
    tokens: { windowTokens, longestAnswer, read, cost },
    listed: { per: "million tokens", inputUsd, outputUsd },
  };
}

const unreadBytes = (input: ModelInput): number =>
  Object.values(input).reduce<number>((sum, value) => (value instanceof Unread ? sum + value.bytes : sum), 0);

/** Models take `max_tokens` at the top or under `sampling_params`. If a client sends both, the larger one counts. */
function answerTokens(input: ModelInput, longest: number): number {
  const sampling = input["sampling_params"];
  const nested = typeof sampling === "object" && sampling !== null ? countAt({ ...sampling }, "max_tokens") : undefined;
  const asked = Math.max(countAt(input, "max_tokens") ?? 0, nested ?? 0);
  return asked > 0 ? Math.min(asked, longest) : longest;
}
