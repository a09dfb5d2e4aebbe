// OpenAI's calls at the hostile upstream: whole and streamed answers, with usage and without, whole and broken off.
import type { ServerResponse } from "node:http";
import { breakAnswer } from "./broken-answers.ts";
import { choices, fateOf } from "./chance.ts";
import { spelledKey } from "./key-watch.ts";
import { pause } from "./pace.ts";

interface Plan {
  readonly events: number;
  readonly word: string;
  readonly pauseMs: number;
  readonly saysUsage: boolean;
  readonly breaksOff: boolean;
  readonly saysTheKey: boolean;
  /** The event that says the usage brings a picture, too: it comes in many pieces. */
  readonly endsLong: boolean;
}

function planOf(seed: number, n: number): Plan {
  const next = choices(seed, n, "chat");
  return {
    events: 3 + Math.floor(next() * 20),
    word: "word ".repeat(next() < 0.1 ? 600 : 3),
    pauseMs: Math.floor(next() * 25),
    saysUsage: next() < 0.7,
    breaksOff: next() < 0.15,
    saysTheKey: next() < 0.08,
    endsLong: next() < 0.2,
  };
}

const picture = "A".repeat(100_000);

/** No other call has as many, so that a charge names its call. */
export const tokensOf = (n: number) => n + 1;
const usageOf = (n: number) => ({ prompt_tokens: 1, completion_tokens: tokensOf(n) - 1 });

/** Answers whether all of it was said, its usage too. */
export async function answerChat(
  response: ServerResponse,
  seed: number,
  n: number,
  streams: boolean,
): Promise<boolean> {
  const plan = planOf(seed, n);
  const { fault } = fateOf(seed, n);
  if (streams) return streamChat(response, plan, n);
  const message = { role: "assistant", content: plan.word };
  const answer = {
    object: "chat.completion",
    choices: [{ index: 0, message }],
    ...(plan.saysUsage && { usage: usageOf(n) }),
  };
  await breakAnswer(response, fault, JSON.stringify(answer), n);
  return plan.saysUsage;
}

async function streamChat(response: ServerResponse, plan: Plan, n: number): Promise<boolean> {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (let event = 0; event < plan.events && !response.destroyed; event++) {
    // Where the stream begins, errors are told: that is where the gateway lets no key through.
    const said = plan.saysTheKey && event === 1 ? spelledKey(n) : JSON.stringify(plan.word);
    response.write(`data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":${said}}}]}\n\n`);
    await pause(plan.pauseMs);
    if (plan.breaksOff && event === 2) response.destroy();
  }
  if (response.destroyed) return false;
  const last = plan.endsLong ? [{ index: 0, delta: { picture } }] : [];
  if (plan.saysUsage) response.write(`data: ${JSON.stringify({ choices: last, usage: usageOf(n) })}\n\n`);
  response.end("data: [DONE]\n\n");
  return plan.saysUsage;
}
