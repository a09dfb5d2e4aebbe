// OpenAI's routes as jobs: chat completions and the list of models, whole or as server-sent events.
import type { Model } from "../models/model.ts";
import { promptOf, type SampleContext } from "./sample.ts";
import { costOf, generate } from "./text.ts";

export function isOpenAiCall(input: Record<string, unknown>): boolean {
  return typeof input["openai_route"] === "string";
}

/** Answers the route. The events of a stream are emitted as chunks. */
export async function sampleOpenAi(
  model: Model,
  input: Record<string, unknown>,
  context: SampleContext,
): Promise<unknown> {
  const route = input["openai_route"];
  const served = model.openAiRoutes.find((known) => route === `/v1/${known}`);
  if (served === undefined) return refusal(`${model.id} has no such route: ${route}`);
  if (served === "models")
    return { object: "list", data: [{ id: model.id, object: "model", created: 0, owned_by: "sluice" }] };
  const call = (input["openai_input"] ?? {}) as Record<string, unknown>;
  const completion = complete(model, call);
  if (call["stream"] !== true) return completion.whole;
  for (const event of completion.events) {
    await context.rest(1 / completion.events.length);
    context.emit(event);
  }
  return null;
}

function refusal(message: string) {
  return { error: { message, type: "invalid_request_error", code: "NOT_FOUND", param: null } };
}

const mostChoices = 128;

function complete(model: Model, call: Record<string, unknown>) {
  const limit = Number(call["max_completion_tokens"] ?? call["max_tokens"] ?? 512);
  const stop = typeof call["stop"] === "string" ? call["stop"] : undefined;
  const { tokens, usage: counted } = generate(model, promptOf(call), { maxTokens: limit, stop });
  /** All choices have the same text, and each is paid for. */
  const asked = Number(call["n"] ?? 1);
  const choices = Array.from({ length: asked >= 1 && asked <= mostChoices ? asked : 1 }, (_, index) => index);
  const written = counted.output * choices.length;
  const usage = {
    prompt_tokens: counted.input,
    completion_tokens: written,
    total_tokens: counted.input + written,
  };
  const cost = costOf(model, { input: counted.input, output: written });
  const finish_reason = tokens.length >= limit ? "length" : "stop";
  const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: model.id };
  const message = { role: "assistant", content: tokens.join("") };
  const whole = {
    ...head,
    object: "chat.completion",
    choices: choices.map((index) => ({ index, message, finish_reason })),
    usage,
    cost,
  };

  const chunks = (delta: object, finish: string | null = null) =>
    choices.map((index) =>
      event({ ...head, object: "chat.completion.chunk", choices: [{ index, delta, finish_reason: finish }] }),
    );
  const events = [
    ...chunks({ role: "assistant", content: "" }),
    ...tokens.flatMap((token) => chunks({ content: token })),
    ...chunks({}, finish_reason),
    event({ ...head, object: "chat.completion.chunk", choices: [], usage, cost }),
    "data: [DONE]\n\n",
  ];
  return { whole, events };
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
