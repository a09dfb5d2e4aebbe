// Signed ids. A handle is a job's id for its owner: `<upstream id>.<admission>.<mac>`. A hook is the secret part of the
// URL for the upstream's notice: `<meter>.<admission>.<mac>`.
import type { Config } from "../../config.ts";
import type { HmacKey } from "../../http/hmac.ts";
import { BoundedMemory } from "../../isolate/bounded-memory.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../identity/signing.ts";
import { admissionPattern, isAsSync } from "./admission-id.ts";

export interface JobKey {
  readonly owner: string;
  readonly model: string;
}

export interface JobRef {
  /** The upstream's id of the job, or `cached-…` for an answer from the cache. */
  readonly upstreamId: string;
  readonly admission: string;
}

export interface Hook {
  /** Which meter: the id of its object, as hex. */
  readonly meter: string;
  readonly admission: string;
}

const upstreamIdPattern = /^[\w-]{1,128}$/;
/** A sync job's id begins with this, as the contract says: ours and the upstream's. */
const syncPrefix = "sync-";
const maxNameLength = syncPrefix.length + 128;
const signed = new RegExp(`^([\\w-]{1,${maxNameLength}})\\.(${admissionPattern})\\.([0-9a-f]{32})$`);
const maxSignedLength = maxNameLength + 1 + 23 + 1 + 32;
const memoryLimit = 8 * 1024 * 1024;
const forever = Number.POSITIVE_INFINITY;

/** Whether an upstream's id can be made a handle. */
export function isUpstreamId(id: unknown): id is string {
  return typeof id === "string" && upstreamIdPattern.test(id);
}

export class Handles {
  readonly #keys: SigningKeys;
  readonly #verified = new BoundedMemory<JobRef>(memoryLimit);

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  mint({ owner, model }: JobKey, { upstreamId, admission }: JobRef): string {
    if (!isUpstreamId(upstreamId)) throw new TypeError("A handle is made of an upstream's id");
    const [key] = this.#keys.of("handle");
    const name = isAsSync(admission) ? syncPrefix + upstreamId : upstreamId;
    return seal(key, name, admission, [owner, model]);
  }

  /**
   * Undefined if this is not a job of this owner and model. The reason is not told: another user's job and an unknown
   * one look alike.
   */
  verify({ owner, model }: JobKey, handle: string): JobRef | undefined {
    if (handle.length > maxSignedLength) return undefined;
    const remembered = memoryKey(owner, model, handle);
    const known = this.#verified.get(remembered, 0);
    if (known) return known;
    const opened = unseal(this.#keys.of("handle"), handle, [owner, model]);
    if (!opened) return undefined;
    const { name, admission } = opened;
    const verified = { upstreamId: isAsSync(admission) ? name.slice(syncPrefix.length) : name, admission };
    this.#verified.set(remembered, verified, forever);
    return verified;
  }

  mintHook({ meter, admission }: Hook): string {
    const [key] = this.#keys.of("hook");
    return seal(key, meter, admission, []);
  }

  verifyHook(hook: string): Hook | undefined {
    const opened = unseal(this.#keys.of("hook"), hook, []);
    return opened && { meter: opened.name, admission: opened.admission };
  }
}

export const handlesOf = memoizeBy((config: Config) => new Handles(signingKeysOf(config)));

function seal(key: HmacKey, first: string, admission: string, bound: readonly string[]): string {
  return `${first}.${admission}.${signFields(key, [...bound, first, admission], 128)}`;
}

function unseal(
  keys: readonly HmacKey[],
  sealed: string,
  bound: readonly string[],
): { name: string; admission: string } | undefined {
  if (sealed.length > maxSignedLength) return undefined;
  const [, name, admission, mac] = signed.exec(sealed) ?? [];
  if (name === undefined || admission === undefined || mac === undefined) return undefined;
  for (const key of keys) {
    if (sameMac(mac, signFields(key, [...bound, name, admission], 128))) return { name, admission };
  }
  return undefined;
}

/**
 * The lengths stand in front because an owner may contain any character: `a` + `bc` and `ab` + `c` must not be one key.
 */
function memoryKey(owner: string, model: string, handle: string): string {
  return `${owner.length}.${model.length}.${owner}${model}${handle}`;
}
