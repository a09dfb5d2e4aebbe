// The one public function of this room: runs a sample in place of a model. A prompt may ask for a fault, such as [fail].
import { describeFaults } from "../errors.ts";
import type { Kind, Model, ModelInput } from "../models/model.ts";
import { sampleImage } from "./image.ts";
import { isOpenAiCall, sampleOpenAi } from "./openai.ts";
import { promptOf, type Sample, type SampleContext } from "./sample.ts";
import { sampleSpeech } from "./speech.ts";
import { sampleText } from "./text.ts";
import { sampleVideo } from "./video.ts";

export type { SampleFile } from "./sample.ts";

export type SampleResult =
  | { kind: "done"; output: unknown }
  | { kind: "failed"; error: string }
  | { kind: "crashed" }
  | { kind: "stopped" };

const samples: Record<Kind, Sample> = {
  image: sampleImage,
  "image-edit": sampleImage,
  video: sampleVideo,
  speech: sampleSpeech,
  text: sampleText,
};

const slowMs = 30_000;
const hugeBytes = 15 * 1024 * 1024;

export async function runSample(
  model: Model,
  given: Record<string, unknown>,
  context: SampleContext,
): Promise<SampleResult> {
  const prompt = promptOf(given);
  if (prompt.includes("[crash]")) return { kind: "crashed" };
  if (prompt.includes("[fail]")) return { kind: "failed", error: "the prompt asked for a failure" };
  if (prompt.includes("[timeout]")) return untilStopped(context.signal);
  if (prompt.includes("[slow]") && !(await pause(slowMs, context.signal))) return { kind: "stopped" };
  if (prompt.includes("[huge]")) return { kind: "done", output: { text: "x".repeat(hugeBytes) } };
  const silent = prompt.includes("[nocost]");
  if (isOpenAiCall(given)) {
    const output = await sampleOpenAi(model, given, silent ? withoutCostIn(context) : context);
    return { kind: "done", output: silent ? withoutCost(output) : output };
  }

  const input = readInput(model, given);
  if ("error" in input) return { kind: "failed", error: input.error };
  if (model.kind !== "text") await context.rest(1);
  const output = await samples[model.kind](model, input.value, context);
  return { kind: "done", output: silent ? withoutCost(output) : output };
}

/** An empty input is accepted; any other must match the model's schema. */
function readInput(model: Model, given: Record<string, unknown>): { value: ModelInput } | { error: string } {
  if (Object.keys(given).length === 0) return { value: {} };
  const checked = model.input.safeParse(given);
  return checked.success ? { value: checked.data } : { error: describeFaults(checked.error.issues, "input") };
}

function withoutCost(output: unknown): unknown {
  if (Array.isArray(output)) return output.map(withoutCost);
  if (typeof output !== "object" || output === null) return output;
  const { cost: _, ...others } = output as Record<string, unknown>;
  return others;
}

/** A streamed answer carries its cost in an event, which is already text. */
function withoutCostIn(context: SampleContext): SampleContext {
  const strip = (event: unknown) => String(event).replace(/,"cost":[\d.e-]+/, "");
  return { ...context, emit: (event) => context.emit(strip(event)) };
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
