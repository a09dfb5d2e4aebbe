// Which requests are the same, and which answers may serve again.
import type { Config } from "../../config.ts";
import { hashHex } from "../../http/hmac.ts";
import { CATALOG_VERSION, canonicalInput, type Model, type ModelInput, seedOf } from "../../models/index.ts";
import { reuseCacheKey, sharedScope } from "./image-cache.ts";

/** An entry that ends sooner is not reused: who asks now wants to keep the answer for a while. */
const minLeftMs = 60 * 60 * 1000;

export function isReusableAt({ expiresAt }: { readonly expiresAt: number }, now: number): boolean {
  return expiresAt - now >= minLeftMs;
}

type Policy = Pick<Config, "imageReuse">;

/** Whether any input of the model may be answered so. */
export function mayReuse(model: Model | undefined, { imageReuse }: Policy): model is Model {
  if (!model || model.output === "text" || imageReuse === "never") return false;
  return imageReuse === "always" || model.reuse !== "never";
}

export function isReusable(model: Model | undefined, input: ModelInput, policy: Policy): model is Model {
  if (!mayReuse(model, policy)) return false;
  return policy.imageReuse === "always" || model.reuse === "always" || seedOf(input) !== undefined;
}

/** Longer texts are hashed by the runtime, whose hash is faster once its promise is paid for. */
const hashedAtOnce = 4096;

/** The name of the request: its entry in KV and its flight. The scope leads it and is hashed too, in full. */
export function nameReuse(
  model: Model,
  input: ModelInput,
  { reuseScope }: Pick<Config, "reuseScope">,
  caller: { readonly owner: string; readonly ownerHash: string },
): string | Promise<string> {
  const [scope, whose] = reuseScope === "shared" ? [sharedScope, ""] : [`user-${caller.ownerHash}`, caller.owner];
  const text = JSON.stringify([whose, model.id, CATALOG_VERSION, canonicalInput(input)]);
  if (text.length <= hashedAtOnce) return reuseCacheKey(scope, hashHex(text));
  return digest(text).then((hash) => reuseCacheKey(scope, hash));
}

async function digest(text: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))).toHex();
}
