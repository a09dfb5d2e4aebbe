// Owner-bound ids: what a user calls a job, and where the upstream tells of it. They carry their own proof.
import type { Config } from "../../config.ts";
import { BoundedMemory } from "../../wire/bounded-memory.ts";
import type { HmacKey } from "../../wire/hmac.ts";
import { oncePer } from "../../wire/once-per.ts";
import { admissionPattern, isAsSync } from "../admission.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../signing.ts";

export interface JobKey {
  readonly owner: string;
  readonly model: string;
}

export interface Handle {
  /** The upstream's id of the job, or `cached-…` for an answer from the cache. */
  readonly ref: string;
  readonly admission: string;
}

export interface Hook {
  /** Which meter: the id of its object, as hex. */
  readonly meter: string;
  readonly admission: string;
}

const refPattern = /^[\w-]{1,128}$/;
/** What a sync job's id begins with, whoever made it. */
const syncPrefix = "sync-";
const maxNameLength = syncPrefix.length + 128;
const signed = new RegExp(`^([\\w-]{1,${maxNameLength}})\\.(${admissionPattern})\\.([0-9a-f]{32})$`);
const maxSignedLength = maxNameLength + 1 + 23 + 1 + 32;
const memoryLimit = 8 * 1024 * 1024;
const forever = Number.POSITIVE_INFINITY;

/** Whether an upstream's id can be made a handle. */
export function isRef(id: unknown): id is string {
  return typeof id === "string" && refPattern.test(id);
}

export class Handles {
  readonly #keys: SigningKeys;
  readonly #verified = new BoundedMemory<Handle>(memoryLimit);

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  mint({ owner, model }: JobKey, { ref, admission }: Handle): string {
    if (!isRef(ref)) throw new TypeError("A handle is made of an upstream's id");
    const [key] = this.#keys.of("handle");
    const name = isAsSync(admission) ? syncPrefix + ref : ref;
    const handle = seal(key, name, admission, [owner, model]);
    this.#verified.set(memoryKey(owner, model, handle), { ref, admission }, forever);
    return handle;
  }

  /** Undefined for whatever is not this owner's job of this model: the caller cannot tell why. */
  verify({ owner, model }: JobKey, handle: string): Handle | undefined {
    if (handle.length > maxSignedLength) return undefined;
    const remembered = memoryKey(owner, model, handle);
    const known = this.#verified.get(remembered, 0);
    if (known) return known;
    const opened = unseal(this.#keys.of("handle"), handle, [owner, model]);
    if (!opened) return undefined;
    const { name, admission } = opened;
    const verified = { ref: isAsSync(admission) ? name.slice(syncPrefix.length) : name, admission };
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

export const handlesOf = oncePer((config: Config) => new Handles(signingKeysOf(config)));

function seal(key: HmacKey, first: string, admission: string, bound: readonly string[]): string {
  const sealed = `${first}.${admission}.${signFields(key, [...bound, first, admission], 128)}`;
  if (!signed.test(sealed)) throw new TypeError("What is sealed is a name and an admission");
  return sealed;
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

/** Led by lengths, since an owner may hold any character. */
function memoryKey(owner: string, model: string, handle: string): string {
  return `${owner.length}.${model.length}.${owner}${model}${handle}`;
}
