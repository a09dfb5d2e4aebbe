// OpenAI's routes as jobs: chat completions and the list of models, whole or as server-sent events.
import type { Model } from "../../../models/model.ts";
import { type Around, promptOf } from "./run.ts";
import { generate } from "./text.ts";

export function isOpenAiCall(input: Record<string, unknown>): boolean {
  return typeof input["openai_route"] === "string";
}

/** What the route answers; a stream's events go out as chunks. */
export async function sampleOpenAi(model: Model, input: Record<string, unknown>, around: Around): Promise<unknown> {
  const route = input["openai_route"];
  if (model.kind !== "text") return refusal(`${model.id} is no text model`);
  if (route === "/v1/models")
    return { object: "list", data: [{ id: model.id, object: "model", created: 0, owned_by: "sluice" }] };
  if (route !== "/v1/chat/completions") return refusal(`${route} is not served`);
  const call = (input["openai_input"] ?? {}) as Record<string, unknown>;
  const completion = complete(model, call);
  if (call["stream"] !== true) return completion.whole;
  for (const event of completion.events) {
    await around.rest(1 / completion.events.length);
    around.emit(event);
  }
  return null;
}

function refusal(message: string) {
  return { error: { message, type: "invalid_request_error", code: "NOT_FOUND", param: null } };
}

function complete(model: Model, call: Record<string, unknown>) {
  const limit = Number(call["max_completion_tokens"] ?? call["max_tokens"] ?? 512);
  const stop = typeof call["stop"] === "string" ? call["stop"] : undefined;
  const { tokens, usage: counted, cost } = generate(model, promptOf(call), { maxTokens: limit, stop });
  const usage = {
    prompt_tokens: counted.input,
    completion_tokens: counted.output,
    total_tokens: counted.input + counted.output,
  };
  const finish_reason = tokens.length >= limit ? "length" : "stop";
  const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: model.id };
  const message = { role: "assistant", content: tokens.join("") };
  const whole = { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage, cost };

  const chunk = (delta: object, finish: string | null = null) =>
    event({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = [
    chunk({ role: "assistant", content: "" }),
    ...tokens.map((token) => chunk({ content: token })),
    chunk({}, finish_reason),
    event({ ...head, object: "chat.completion.chunk", choices: [], usage, cost }),
    "data: [DONE]\n\n",
  ];
  return { whole, events };
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
