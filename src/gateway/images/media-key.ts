// The key of a media link. It says when it ends and proves itself: one that is made up or over costs no storage call.
import * as z from "zod";
import type { Config } from "../../config.ts";
import type { MediaField } from "../../contract/media-fields.ts";
import { oncePer } from "../../wire/once-per.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../signing.ts";

const letters = { image_url: "i", video_url: "v", audio_url: "a" } as const satisfies Record<MediaField, string>;
const pattern = /^(([0-9a-f]{32})-([iva])([0-9a-z]{9}))-([0-9a-f]{16})$/;

/** As it is kept; whether it was minted here is asked where somebody brings it. */
export const mediaKeySchema = z.string().regex(pattern);

/** Of one owner's job, whoever of its admissions is asked about: joiners share it. */
export interface JobOfOwner {
  readonly owner: string;
  readonly model: string;
  readonly ref: string;
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

  /** 128 bits that nobody can guess, the same for whoever sees the job's end. */
  tagOf({ owner, model, ref }: JobOfOwner): string {
    const [key] = this.#keys.of("media");
    return signFields(key, ["tag", owner, model, ref], 128);
  }

  mint(tag: string, field: MediaField, expiresAt: number): string {
    const [key] = this.#keys.of("media");
    const named = `${tag}-${letters[field]}${expiresAt.toString(36).padStart(9, "0")}`;
    return `${named}-${signFields(key, ["key", named], 64)}`;
  }

  /** Undefined for whatever was not minted here. */
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

export const mediaKeysOf = oncePer((config: Config) => new MediaKeys(signingKeysOf(config)));
