// The key of an upload's link. Like a picture's, it says when it ends and proves itself: one that is made up or over costs no
// storage call. It ends as a file's name does, since some services look there for the type.
import type { Config } from "../../config.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../identity/signing.ts";
import { extensionOf, typeOf, uploadExtensions } from "./file-types.ts";

const pattern = new RegExp(`^([0-9a-f]{32}-([0-9a-z]{9}))-([0-9a-f]{16})\\.(${uploadExtensions.join("|")})$`);

export interface UploadKey {
  readonly text: string;
  readonly type: string;
  readonly expiresAt: number;
}

export class UploadKeys {
  readonly #keys: SigningKeys;

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  /** 128 bits that nobody can guess. */
  mint(type: string, expiresAt: number): string {
    const random = crypto.randomUUID().replaceAll("-", "");
    const named = `${random}-${expiresAt.toString(36).padStart(9, "0")}`;
    const extension = extensionOf(type);
    const [key] = this.#keys.of("upload");
    return `${named}-${signFields(key, ["key", named, extension], 64)}.${extension}`;
  }

  /** Undefined for whatever was not minted here. */
  read(text: string): UploadKey | undefined {
    const [, named, moment, mac, extension] = pattern.exec(text) ?? [];
    if (named === undefined || moment === undefined || mac === undefined || extension === undefined) return undefined;
    const type = typeOf(extension);
    if (type === undefined) return undefined;
    for (const key of this.#keys.of("upload")) {
      if (!sameMac(mac, signFields(key, ["key", named, extension], 64))) continue;
      return { text, type, expiresAt: Number.parseInt(moment, 36) };
    }
    return undefined;
  }
}

export const uploadKeysOf = memoizeBy((config: Config) => new UploadKeys(signingKeysOf(config)));

export function uploadLink(origin: string, key: string): string {
  return `${origin}/uploads/${key}`;
}
