// A sample: a function from a model and its input to an output. The context lets it emit chunks and store files.
import type { Model, ModelInput } from "../models/model.ts";

/** A file that a sample made. */
export interface SampleFile {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly extension: string;
}

export interface SampleContext {
  readonly signal: AbortSignal;
  readonly emit: (chunk: unknown) => void;
  /** Waits for a share, from 0 to 1, of the time that a sample should take. */
  readonly rest: (share: number) => Promise<void>;
  /** Stores the file and returns its URL. */
  readonly putMedia: (file: SampleFile) => Promise<string>;
  /** Reads the file behind a URL, and keeps it for as long as it is used. Undefined where it cannot be had. Never throws. */
  readonly withMedia: <T>(url: string, use: (bytes: Uint8Array) => Promise<T>) => Promise<T | undefined>;
}

export type Sample = (model: Model, input: ModelInput, context: SampleContext) => Promise<unknown>;

/** All text that a person may have written, wherever the model takes it. */
export function promptOf(input: Record<string, unknown>): string {
  const inner = (input["openai_input"] ?? input) as Record<string, unknown>;
  if (typeof inner["prompt"] === "string") return inner["prompt"];
  const messages = Array.isArray(inner["messages"]) ? inner["messages"] : [];
  return messages.map((message) => contentOf(message)).join("\n");
}

function contentOf(message: unknown): string {
  const content = typeof message === "object" && message !== null && "content" in message ? message.content : "";
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part) => (typeof part?.text === "string" ? part.text : "")).join(" ");
}
