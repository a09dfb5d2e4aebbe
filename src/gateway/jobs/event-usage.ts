// One event of an OpenAI stream: how much text it hands out, and what it says of cost or usage.
import { isObject } from "../../json/is-object.ts";
import { bytesOfText } from "../quota/text-bytes.ts";

export interface EventUsage {
  readonly textBytes: number;
  /** The event, where it names a cost or a usage. */
  readonly said: Record<string, unknown> | undefined;
}

/** The usual chunk, `{…"choices":[{…"delta":{"content":"word"}…}]…}`, whose text stands in one place. Parsing it costs three times as much. */
const commonChunk =
  /^\{[^{}[\]]*"choices":\[\{[^{}[\]]*"delta":\{(?:"role":"[a-z]*",)?"content":"([^"\\]*)"\}[^{}[\]]*\}\][^{}[\]]*\}$/;
const says = /"(cost|usage)"\s*:\s*[^n\s]/;
/** What stands around the text of a usual chunk. More may be text under another name. */
const mostAround = 400;

/** What is no JSON object is text as a whole. */
export function readEvent(data: string): EventUsage {
  const text = commonChunk.exec(data)?.[1];
  if (text !== undefined && data.length - text.length <= mostAround && !says.test(data)) {
    return { textBytes: bytesOfText(text), said: undefined };
  }
  try {
    const event: unknown = JSON.parse(data);
    if (isObject(event)) return { textBytes: textBytesOf(event["choices"] ?? event), said: saidIn(event) };
  } catch {
    // Broken JSON was handed out all the same.
  }
  return { textBytes: bytesOfText(data), said: undefined };
}

function saidIn(event: Record<string, unknown>): EventUsage["said"] {
  const { cost, usage } = event;
  return (cost ?? usage ?? undefined) === undefined ? undefined : event;
}

/** Strings that are no part of what the model wrote. */
export const labels: ReadonlySet<string> = new Set([
  "id",
  "object",
  "model",
  "role",
  "type",
  "finish_reason",
  "stop_reason",
  "native_finish_reason",
  "system_fingerprint",
  "service_tier",
  "provider",
  /** The text once more, token by token. */
  "logprobs",
  "usage",
]);

/** Whatever the member is called: answers, reasoning, refusals, a tool's arguments. */
function textBytesOf(value: unknown): number {
  if (typeof value === "string") return bytesOfText(value);
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + textBytesOf(item), 0);
  if (!isObject(value)) return 0;
  let bytes = 0;
  for (const name in value) if (!labels.has(name)) bytes += textBytesOf(value[name]);
  return bytes;
}
