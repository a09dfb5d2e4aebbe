// The key of a picture's link: it names the admission that made it, and proves itself, so that a made-up key costs nothing.
import type { Config } from "../../config.ts";
import { oncePer } from "../../wire/once-per.ts";
import { admissionPattern } from "../admission.ts";
import { type SigningKeys, sameMac, signFields, signingKeysOf } from "../signing.ts";

const pattern = new RegExp(`^(${admissionPattern})-([0-9])-([0-9a-f]{32})$`);

export class MediaKeys {
  readonly #keys: SigningKeys;

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  /** The same admission has the same keys, whoever sees its end first. */
  async mint(admission: string, index: number): Promise<string> {
    const [key] = await this.#keys.of("media");
    return `${admission}-${index}-${await signFields(key, [admission, String(index)], 128)}`;
  }

  async isGenuine(mediaKey: string): Promise<boolean> {
    const [, admission, index, mac] = pattern.exec(mediaKey) ?? [];
    if (admission === undefined || index === undefined || mac === undefined) return false;
    for (const key of await this.#keys.of("media")) {
      if (sameMac(mac, await signFields(key, [admission, index], 128))) return true;
    }
    return false;
  }
}

export const mediaKeysOf = oncePer((config: Config) => new MediaKeys(signingKeysOf(config)));
