// A call of OpenAI's `chat/completions`: what it may say, and what it costs at most.
import * as z from "zod";
import { between, integer } from "./inputs.ts";
import type { TokenPrice, Unread } from "./model.ts";
import { isBounded, isCount, mayMultiply, multipliersOf } from "./multipliers.ts";
import { LONGEST_ANSWER } from "./text-inputs.ts";

const LONGEST_NAME = 256;
const MOST_MESSAGES = 2048;
const MOST_CHOICES = 128;

const tokens = () => integer(1, LONGEST_ANSWER).nullish();
const choices = () => integer(1, MOST_CHOICES).nullish();
const penalty = () => between(-2, 2).nullish();
const parts = () => z.array(z.looseObject({ type: z.string().max(LONGEST_NAME) }));

/** The members that are known; a chat may have others, but none that multiplies what it costs. */
const fields = {
  /** The address says it too. */
  model: z.string().min(1).max(LONGEST_NAME).nullish(),
  messages: z
    .array(
      z.looseObject({
        role: z.string().min(1).max(LONGEST_NAME),
        content: z.union([z.string(), parts()], "expected a string or an array of parts, each with its type").nullish(),
      }),
    )
    .min(1)
    .max(MOST_MESSAGES),
  max_tokens: tokens(),
  max_completion_tokens: tokens(),
  max_output_tokens: tokens(),
  n: choices(),
  best_of: choices(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  temperature: between(0, 2).nullish(),
  top_p: between(0, 1).nullish(),
  presence_penalty: penalty(),
  frequency_penalty: penalty(),
  logprobs: z.boolean().nullish(),
  top_logprobs: integer(0, 20).nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(64)], "expected a string or an array of at most 64").nullish(),
  tools: z.array(z.looseObject({})).nullish(),
  response_format: z.looseObject({}).nullish(),
};

const chatSchema = z.looseObject(fields);
export type Chat = z.output<typeof chatSchema>;

export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/**
 * The call as the schema has it, and what is wrong with it, each fault with its place. Members of a large body that were not
 * read are held to nothing, but for those that may multiply its cost, or say how it is told.
 */
export function readChat(
  call: Readonly<Record<string, unknown>>,
  unread: ReadonlyMap<string, Unread["kind"]> = new Map(),
): { readonly chat: Chat | undefined; readonly faults: readonly Fault[] } {
  const { data: chat, error } = chatSchema.safeParse(call);
  const issues = error?.issues ?? [];
  const faults = [
    ...issues.filter(({ path: [name] }) => !unread.has(String(name))),
    ...[...unread].filter(mustBeRead).map(([name]) => ({ path: [name], message: "Too large" })),
    ...multipliersOf(call)
      .filter(({ path: [name = ""] }) => !Object.hasOwn(fields, name))
      .filter((multiplier) => !isBounded(multiplier, fields))
      .map(({ path }) => ({ path, message: "Multiplies the cost, and is not known here" })),
  ];
  return { chat, faults: faults.length > 0 ? faults : tooMuch(call) };
}

function mustBeRead([name, kind]: [string, Unread["kind"]]): boolean {
  return mayMultiply(name, kind) || name === "stream" || name === "stream_options";
}

/** All answers of one call together are no longer than the longest that it may ask for. */
function tooMuch(call: Readonly<Record<string, unknown>>): Fault[] {
  const many = (["n", "best_of"] as const).find((name) => choicesIn(call) > 1 && call[name] === choicesIn(call));
  const longest = answerIn(call, LONGEST_ANSWER);
  if (many === undefined || choicesIn(call) * longest <= LONGEST_ANSWER) return [];
  const helps = Math.floor(LONGEST_ANSWER / choicesIn(call));
  const named = answerLimits.find((name) => call[name] === longest) ?? "max_tokens";
  const message = `Needs ${named} of at most ${helps}: all answers together may have ${LONGEST_ANSWER} tokens`;
  return [{ path: [many], message }];
}

const answerLimits = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;

function choicesIn({ n, best_of }: Partial<Chat>): number {
  return Math.max(1, ...[n, best_of].filter(isCount));
}

/** The largest counts where several are sent. A chat knows no `max_output_tokens`: it may raise the bound, never set one. */
function answerIn({ max_tokens, max_completion_tokens, max_output_tokens }: Partial<Chat>, longest: number): number {
  const limits = [max_tokens, max_completion_tokens].filter(isCount);
  return limits.length === 0 ? longest : Math.max(...limits, ...[max_output_tokens].filter(isCount));
}

/** An upper bound in micro-USD, of a call without faults whose body has so many bytes. Of a large one only a part was read. */
export function reserveChat(call: Partial<Chat>, bytes: number, price: TokenPrice): number {
  const read = isText(call) ? price.read(bytes) : price.windowTokens;
  const written = Math.min(choicesIn(call) * answerIn(call, price.longestAnswer), price.longestAnswer);
  return price.cost(read, written);
}

/** How many tokens a picture or a sound becomes, its address does not say. */
function isText({ messages }: Partial<Chat>): boolean {
  if (!messages) return false;
  return messages.every(({ content }) => !Array.isArray(content) || content.every(({ type }) => textual.has(type)));
}
const textual: ReadonlySet<string> = new Set(["text", "refusal"]);
