// Requests to the models that are known to be right, and the ways to change one thing in them.
import type { Model, ModelInput } from "../../src/models/index.ts";
import type { Documented } from "./documented.ts";

const picture = "https://media.example.com/cat.png";

const samples: Readonly<Record<string, unknown>> = {
  prompt: "a cat on a sluice gate",
  image: picture,
  images: [picture],
  audio: "https://media.example.com/purr.wav",
  video: "https://media.example.com/cat.mp4",
  size: "720p",
  duration: 4,
  character_orientation: "video",
  messages: [{ role: "user", content: "hello" }],
};

/** The least that the model accepts. */
export const smallest = ({ required }: Pick<Documented, "required">): ModelInput =>
  Object.fromEntries(required.filter(isTop).map((name) => [name, samples[name]]));

export const isTop = (name: string): boolean => !/[.[]/.test(name);

/** `loras[].path` is the path of the first one's. */
export const pathOf = (name: string): (string | number)[] =>
  name.split(".").flatMap((part) => (part.endsWith("[]") ? [part.slice(0, -2), 0] : [part]));

const elements: Readonly<Record<string, unknown>> = {
  messages: samples["messages"],
  loras: [{ path: "owner/style", scale: 1 }],
  high_noise_loras: [{ path: "owner/style", scale: 1 }],
  low_noise_loras: [{ path: "owner/style", scale: 1 }],
};

/** The same request with one thing changed; `undefined` takes it out. */
export function changed(input: ModelInput, name: string, value: unknown): ModelInput {
  const copy: Record<string, unknown> = structuredClone({ ...input });
  const path = pathOf(name);
  const [top] = path;
  if (typeof top === "string" && path[1] === 0) copy[top] ??= structuredClone(elements[top]);
  put(copy, path, value);
  return copy;
}

function put(target: Record<string | number, unknown>, [key, ...rest]: (string | number)[], value: unknown): void {
  if (key === undefined) return;
  if (rest.length === 0) {
    if (value === undefined) delete target[key];
    else target[key] = value;
    return;
  }
  target[key] ??= {};
  put(target[key] as Record<string | number, unknown>, rest, value);
}

export const read = (input: unknown, name: string): unknown =>
  pathOf(name).reduce<unknown>((value, key) => (value as Record<string | number, unknown>)[key], input);

/** The paths of what is wrong, each as text; empty when it is accepted. */
export const faults = (model: Model, input: unknown): string[] =>
  (model.input.safeParse(input).error?.issues ?? []).map((issue) => issue.path.join("."));
