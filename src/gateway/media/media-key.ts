// The key of a media link. It carries its end and a MAC, so a forged or expired key is refused without a storage call.
import * as z from "zod";
import type { Config } from "../../config.ts";
import type { MediaField } from "../../contract/media-fields.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../identity/signing.ts";

const letters = { image_url: "i", video_url: "v", audio_url: "a" } as const satisfies Record<MediaField, string>;
const pattern = /^(([0-9a-f]{32})-([iva])([0-9a-z]{9}))-([0-9a-f]{16})$/;

/** The form of a stored key. Its MAC is checked only when a request brings it. */
export const mediaKeySchema = z.string().regex(pattern);

/** A job of one owner. All the owner's admissions that share the upstream's job are one `JobOfOwner`. */
export interface JobOfOwner {
  readonly owner: string;
  readonly model: string;
  readonly upstreamId: string;
}

export interface MediaKey {
  readonly text: string;
  readonly tag: string;
  readonly field: MediaField;
  readonly expiresAt: number;
}

/** The moment that a minted key names. */
export function endOf(key: string): number {
  return Number.parseInt(pattern.exec(key)?.[4] ?? "", 36);
}

export class MediaKeys {
  readonly #keys: SigningKeys;

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  /** 128 bits that cannot be guessed, the same for every request that sees the job's end. */
  tagOf({ owner, model, upstreamId }: JobOfOwner): string {
    const [key] = this.#keys.of("media");
    return signFields(key, ["tag", owner, model, upstreamId], 128);
  }

  mint(tag: string, field: MediaField, expiresAt: number): string {
    const [key] = this.#keys.of("media");
    const named = `${tag}-${letters[field]}${expiresAt.toString(36).padStart(9, "0")}`;
    return `${named}-${signFields(key, ["key", named], 64)}`;
  }

  /** Undefined if the text was not minted here. */
  read(text: string): MediaKey | undefined {
    const [, named, tag, letter, moment, mac] = pattern.exec(text) ?? [];
    if (named === undefined || tag === undefined || moment === undefined || mac === undefined) return undefined;
    const [field] = Object.entries(letters).find(([, known]) => known === letter) ?? [];
    for (const key of this.#keys.of("media")) {
      if (!sameMac(mac, signFields(key, ["key", named], 64))) continue;
      return { text, tag, field: field as MediaField, expiresAt: Number.parseInt(moment, 36) };
    }
    return undefined;
  }
}

export const mediaKeysOf = memoizeBy((config: Config) => new MediaKeys(signingKeysOf(config)));
