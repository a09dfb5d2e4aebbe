// Makes a model of a line of the price list: all that follows from its kind is added here, once.
import * as z from "zod";
import { once } from "../isolate/once.ts";
import { costOf } from "./cost.ts";
import { mediaMembers } from "./media-members.ts";
import type { Kind, Model, ModelInput, OpenAiRoute, OutputShape, Pricing, Reuse } from "./model.ts";
import type { Price } from "./money.ts";
import { isBounded, multipliersOf } from "./multipliers.ts";

interface Listing {
  readonly id: string;
  readonly title: string;
  /** As documented, for people. */
  readonly price: string;
  readonly charge: Price;
  /** Built when the model is first used: all the schemas together would take longer than the rest of the start. */
  readonly input: () => z.ZodRawShape;
  /** For a text model that is served under other routes than the default ones. */
  readonly openAiRoutes?: readonly OpenAiRoute[];
}

const outputs: Readonly<Record<Kind, OutputShape>> = {
  image: "image_url",
  "image-edit": "image_url",
  video: "video_url",
  speech: "audio_url",
  text: "text",
};

export const image = (listing: Listing): Model => define("image", listing);
export const imageEdit = (listing: Listing): Model => define("image-edit", listing);
export const video = (listing: Listing): Model => define("video", listing);
export const speech = (listing: Listing): Model => define("speech", listing);
export const text = (listing: Listing): Model => define("text", listing);

const chatRoutes: readonly OpenAiRoute[] = ["chat/completions", "models"];

function define(kind: Kind, listing: Listing): Model {
  const { id, title, price, charge, input, openAiRoutes = kind === "text" ? chatRoutes : [] } = listing;
  const fields = once(input);
  const schemaOf = (shape: z.ZodRawShape) =>
    z.looseObject(shape).refine(isShallow, `Nested more than ${DEEPEST} levels deep`);
  const schema = once(() => schemaOf(fields()));
  const media = once(() => mediaMembers(fields()));
  return {
    id,
    title,
    kind,
    price,
    pricing: pricingOf(price, charge),
    output: outputs[kind],
    get input(): z.ZodType<ModelInput> {
      return schema();
    },
    inputWithout: (names) =>
      schemaOf(Object.fromEntries(Object.entries(fields()).filter(([name]) => !names.includes(name)))),
    get media() {
      return media();
    },
    get reuse(): Reuse {
      return reuseOf(kind, fields());
    },
    openAiRoutes,
    reserve: (asked) => reserve(asked, fields(), charge),
    leastPrice: charge.least,
    maxPrice: charge.most,
    tokens: charge.tokens,
    costOf: (output) => costOf(output, charge),
  };
}

function pricingOf(documented: string, { listed, most }: Price): Pricing {
  const isRange = documented.includes("–");
  return { ...listed, ...(isRange && { upTo: true }), maxUsd: most / 1e6 };
}

function reserve(input: ModelInput, fields: z.ZodRawShape, charge: Price): number {
  if (!multipliersOf(input).every((multiplier) => isBounded(multiplier, fields))) return charge.most;
  const microUsd = charge.reserve(input);
  return Number.isSafeInteger(microUsd) && microUsd > 0 ? Math.min(microUsd, charge.most) : charge.most;
}

/**
 * An explicit seed is the wish for the same result again. A model that takes no seed draws anew each time, and who asks twice
 * wants another take; so does who repeats a question to a text model, whose seed promises little.
 */
const reuseOf = (kind: Kind, fields: z.ZodRawShape): Reuse =>
  kind !== "text" && "seed" in fields ? "seeded" : "never";

const DEEPEST = 64;

/** Unknown keys are kept. Their depth is bounded, so that later walks do not run out of stack. */
function isShallow(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return true;
  for (const name in value) {
    if (depth === DEEPEST || !isShallow(value[name as never], depth + 1)) return false;
  }
  return true;
}
