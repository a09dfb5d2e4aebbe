// A public model as the other rooms know it: its inputs, its prices, and which answers may be reused.
import type * as z from "zod";
import type { MediaKind } from "./media-members.ts";

export type Kind = "image" | "image-edit" | "video" | "speech" | "text";

/** The field of the answer that holds the media URL; text answers have none. */
export type OutputShape = "image_url" | "video_url" | "audio_url" | "text";

/** What may be answered from the cache: requests with an explicit seed, all, or none. */
export type Reuse = "seeded" | "always" | "never";

/** A model's input once it passed its schema: defaults filled in, unknown keys kept. */
export type ModelInput = Readonly<Record<string, unknown>>;

/** Replaces a member that was too large to read: its kind, and its size in bytes of JSON. */
export class Unread {
  readonly kind: "object" | "array" | "string" | "number" | "boolean" | "null";
  readonly bytes: number;

  constructor(kind: Unread["kind"], bytes: number) {
    this.kind = kind;
    this.bytes = bytes;
  }
}

/** OpenAI's routes that a model may be served under, behind `openai/v1/`. */
export type OpenAiRoute = "chat/completions" | "models";

/** How a model is paid by the token. */
export interface TokenPrice {
  /** What the model reads at most, whatever was sent. */
  readonly windowTokens: number;
  /** The most that one call may ask to be written. */
  readonly longestAnswer: number;
  /** How many tokens so many bytes of text are at most. */
  read(bytes: number): number;
  /** In micro-USD. */
  cost(inputTokens: number, outputTokens: number): number;
}

/** The documented price in numbers. */
export interface ListedPrice {
  readonly per: "image" | "video" | "megapixel" | "second" | "5 seconds" | "1000 characters" | "million tokens" | "job";
  readonly usd?: number;
  /** One price for each value of a field of the input. */
  readonly usdBy?: { readonly field: string; readonly values: Readonly<Record<string, number>> };
  readonly inputUsd?: number;
  readonly outputUsd?: number;
}

export interface Pricing extends ListedPrice {
  /** A range is documented, and nothing says what decides within it: these are its top. */
  readonly upTo?: true;
  readonly maxUsd: number;
}

export interface Model {
  readonly id: string;
  readonly title: string;
  readonly kind: Kind;
  /** The price as documented, for people. */
  readonly price: string;
  readonly pricing: Pricing;
  readonly input: z.ZodType<ModelInput>;
  /** The same schema, where these members may be anything. */
  inputWithout(names: readonly string[]): z.ZodType<ModelInput>;
  /** Its members that are files: each a string, or a list of them. */
  readonly media: ReadonlyMap<string, MediaKind>;
  readonly output: OutputShape;
  readonly reuse: Reuse;
  /** Undefined for a model that writes no text. */
  readonly openAiRoutes: readonly OpenAiRoute[];
  /**
   * An upper bound of what this input can cost, in micro-USD: a safe integer from 0 to `maxPrice`, the exact price where it
   * is a function of the input. What the input says beyond its schema of how much is to be made means `maxPrice`.
   */
  reserve(input: ModelInput): number;
  /** No input costs less, in micro-USD. */
  readonly leastPrice: number;
  /** An upper bound over every input that the schema accepts, in micro-USD. */
  readonly maxPrice: number;
  /** Undefined if the price does not go by tokens. */
  readonly tokens: TokenPrice | undefined;
  /** What the answer says it cost, in micro-USD; undefined when it says nothing, or nothing that can be true. */
  costOf(output: unknown, input: ModelInput): number | undefined;
}
