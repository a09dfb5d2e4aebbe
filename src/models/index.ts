// The catalog: every public model, one line a family.
import { chatterbox } from "./chatterbox.ts";
import { cogito } from "./cogito.ts";
import { flux } from "./flux.ts";
import { gptOss } from "./gpt-oss.ts";
import { granite } from "./granite.ts";
import { infinitetalk } from "./infinitetalk.ts";
import { kimi } from "./kimi.ts";
import { kling } from "./kling.ts";
import { minimax } from "./minimax.ts";
import type { Model } from "./model.ts";
import { nanoBanana } from "./nano-banana.ts";
import { pruna } from "./pruna.ts";
import { qwenImage } from "./qwen-image.ts";
import { qwen3 } from "./qwen3.ts";
import { seedance } from "./seedance.ts";
import { seedream } from "./seedream.ts";
import { sora } from "./sora.ts";
import { vidu } from "./vidu.ts";
import { wan } from "./wan.ts";
import { zImage } from "./z-image.ts";

export { canonicalInput, seedOf } from "./canonical.ts";
export { type Chat, type Fault, readChat, reserveChat } from "./chat.ts";
export { type CatalogEntry, describeModel } from "./describe.ts";
export type { Kind, Model, ModelInput, OpenAiRoute, OutputShape, Reuse, TokenPrice } from "./model.ts";

/** Part of every reuse key: raise it when a default changes, or what a model makes of the same input. */
export const CATALOG_VERSION = 1;

export const models: readonly Model[] = [
  ...flux,
  ...qwenImage,
  ...nanoBanana,
  ...pruna,
  ...seedream,
  ...zImage,
  ...wan,
  ...kling,
  ...seedance,
  ...sora,
  ...vidu,
  ...infinitetalk,
  ...chatterbox,
  ...minimax,
  ...cogito,
  ...gptOss,
  ...granite,
  ...kimi,
  ...qwen3,
];

const byId: ReadonlyMap<string, Model> = new Map(models.map((model) => [model.id, model]));

export const findModel = (id: string): Model | undefined => byId.get(id);
