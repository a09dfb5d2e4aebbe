// Whatever leaves the gateway, or is kept beside it, is looked at for the upstream's key: by the canary of the tests, and by
// the product's own search, which knows more spellings.
import { SecretSearch } from "../../src/json/secret-search.ts";
import { guardKey, hear, takeFound } from "../support/canary.ts";

export const upstreamKey = "the-key/of+the-upstream_nobody-may-read-9f2c";
const search = new SecretSearch([upstreamKey]);
const encoder = new TextEncoder();
const decoder = new TextDecoder("latin1");

export class KeyWatch {
  readonly faults: string[] = [];
  /** How much was looked at, by where it stood. */
  readonly looked = new Map<string, number>();

  constructor() {
    guardKey(upstreamKey);
  }

  look(place: string, said: string | Uint8Array, where = ""): void {
    this.looked.set(place, (this.looked.get(place) ?? 0) + 1);
    const bytes = typeof said === "string" ? encoder.encode(said) : said;
    hear(`${place} ${where}`, typeof said === "string" ? said : decoder.decode(said));
    const heard = takeFound();
    if (heard.length > 0) this.faults.push(...heard.map((found) => `the upstream's key is in ${found}`));
    else if (search.finds(bytes)) this.faults.push(`the upstream's key is spelled in ${place} ${where}`);
  }
}

const inString = (text: string) => JSON.stringify(text).slice(1, -1);
const every = (write: (code: number) => string) => (text: string) =>
  Array.from(text, (character) => write(character.charCodeAt(0))).join("");
const unicode = every((code) => `\\u${code.toString(16).padStart(4, "0")}`);
const percent = every((code) => `%${code.toString(16).padStart(2, "0")}`);
const mixed = (text: string) => unicode(text.slice(0, 3)) + text.slice(3, 9) + unicode(text.slice(9));
const urlSafe = (text: string) => btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** As it may stand inside a string of JSON. */
const spellings: readonly ((key: string) => string)[] = [
  (key) => key,
  unicode,
  mixed,
  percent,
  (key) => inString(unicode(key)),
  (key) => unicode(percent(key)),
  (key) => key.replaceAll("/", "\\/"),
  (key) => btoa(key),
  (key) => btoa(`-${key}`),
  (key) => btoa(`Bearer ${key}`),
  (key) => urlSafe(key),
  (key) => urlSafe(`--${key}?`),
];

/** A string of JSON, quotes and all, with the key in it. */
export function spelledKey(n: number): string {
  const spell = spellings[n % spellings.length] as (key: string) => string;
  return `"said ${spell(upstreamKey)} here"`;
}
