// The two ways to ask a text model: a bare prompt, or messages with sampling parameters beside them.
import * as z from "zod";
import { between, integer, prompt } from "./inputs.ts";

/** Above the longest answer that any of these models gives. */
export const LONGEST_ANSWER = 131_072;
const LONGEST_TEXT = 1_048_576;
const MOST_MESSAGES = 2048;

export const maxTokens = () => integer(1, LONGEST_ANSWER);

/** −1 is "all of them". */
export const topK = () => integer(-1, 1_000_000);

export const topP = () => between(0, 1);

export const completion = () => ({
  prompt: prompt(LONGEST_TEXT),
  max_tokens: maxTokens().default(512),
  temperature: between(0, 1).default(0.7),
  top_p: topP().optional(),
  top_k: topK().optional(),
  stop: z.string().max(1024).optional(),
});

export const messages = () =>
  z
    .array(z.looseObject({ role: z.enum(["system", "user", "assistant"]), content: z.string().max(LONGEST_TEXT) }))
    .min(1)
    .max(MOST_MESSAGES);

/** Parsed even when absent, so that the defaults inside are filled in. */
export const samplingParams = (fields: z.ZodRawShape) => z.looseObject(fields).prefault({});
