// What runs when no worker is attached: a sample of each kind of model, and the trouble that a prompt may ask for.
import { describeFaults } from "../../../errors.ts";
import type { Kind, Model, ModelInput } from "../../../models/model.ts";
import type { MediaFile } from "../../media.ts";
import { sampleImage } from "./image.ts";
import { isOpenAiCall, sampleOpenAi } from "./openai.ts";
import { sampleSpeech } from "./speech.ts";
import { sampleText } from "./text.ts";
import { sampleVideo } from "./video.ts";

export type SampleResult =
  | { kind: "done"; output: unknown }
  | { kind: "failed"; error: string }
  | { kind: "crashed" }
  | { kind: "stopped" };

export interface Around {
  readonly signal: AbortSignal;
  readonly emit: (chunk: unknown) => void;
  /** Takes a share of the time that a sample is to take, from 0 to 1. */
  readonly rest: (share: number) => Promise<void>;
  readonly putMedia: (file: MediaFile) => Promise<string>;
}
export type Sample = (model: Model, input: ModelInput, around: Around) => Promise<unknown>;

const samples: Record<Kind, Sample> = {
  image: sampleImage,
  "image-edit": sampleImage,
  video: sampleVideo,
  speech: sampleSpeech,
  text: sampleText,
};

const slowMs = 30_000;
const hugeBytes = 15 * 1024 * 1024;

export async function runSample(model: Model, given: Record<string, unknown>, around: Around): Promise<SampleResult> {
  const prompt = promptOf(given);
  if (prompt.includes("[crash]")) return { kind: "crashed" };
  if (prompt.includes("[fail]")) return { kind: "failed", error: "the prompt asked for a failure" };
  if (prompt.includes("[timeout]")) return untilStopped(around.signal);
  if (prompt.includes("[slow]") && !(await pause(slowMs, around.signal))) return { kind: "stopped" };
  if (prompt.includes("[huge]")) return { kind: "done", output: { text: "x".repeat(hugeBytes) } };
  const silent = prompt.includes("[nocost]");
  if (isOpenAiCall(given)) {
    const output = await sampleOpenAi(model, given, silent ? withoutCostIn(around) : around);
    return { kind: "done", output: silent ? withoutCost(output) : output };
  }

  const input = readInput(model, given);
  if ("error" in input) return { kind: "failed", error: input.error };
  if (model.kind !== "text") await around.rest(1);
  const output = await samples[model.kind](model, input.value, around);
  return { kind: "done", output: silent ? withoutCost(output) : output };
}

/** Empty input runs too; anything else must be what the model takes. */
function readInput(model: Model, given: Record<string, unknown>): { value: ModelInput } | { error: string } {
  if (Object.keys(given).length === 0) return { value: {} };
  const checked = model.input.safeParse(given);
  return checked.success ? { value: checked.data } : { error: describeFaults(checked.error.issues, "input") };
}

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

function withoutCost(output: unknown): unknown {
  if (Array.isArray(output)) return output.map(withoutCost);
  if (typeof output !== "object" || output === null) return output;
  const { cost: _, ...others } = output as Record<string, unknown>;
  return others;
}

/** A streamed answer tells its cost in an event, which is text by then. */
function withoutCostIn(around: Around): Around {
  const strip = (event: unknown) => String(event).replace(/,"cost":[\d.e-]+/, "");
  return { ...around, emit: (event) => around.emit(strip(event)) };
}

function untilStopped(signal: AbortSignal): Promise<SampleResult> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve({ kind: "stopped" });
    signal.addEventListener("abort", () => resolve({ kind: "stopped" }));
  });
}

/** False when the run was stopped meanwhile. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await scheduler.wait(ms, { signal });
    return true;
  } catch {
    return false;
  }
}
