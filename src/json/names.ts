// Finds a few known names among a body's keys, also in escaped spellings, without making strings of the other keys.
import { utf8 } from "./utf8-text.ts";

const BACKSLASH = 0x5c;
const decoder = utf8();
const encoder = new TextEncoder();

/** What a key or a string value says, given the bytes between its quotes. The text was checked before. */
export function unquote(bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, end));
  return text.includes("\\") ? String(JSON.parse(`"${text}"`)) : text;
}

/** The JSON value that the bytes spell. The text was checked before. */
export function parsed(bytes: Uint8Array, start: number, end: number): unknown {
  return JSON.parse(decoder.decode(bytes.subarray(start, end)));
}

/** In a valid text, a string that a colon follows is a name. */
const strings = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

/** Whether an object in the bytes, of which the value was read, says a name twice: parsers do not agree on which counts. */
export function repeatsName(value: unknown, bytes: Uint8Array, start: number, end: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  const written = [...decoder.decode(bytes.subarray(start, end)).matchAll(strings)].filter(([, colon]) => colon);
  return written.length > namesIn(value);
}

function namesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value).reduce<number>((sum, one) => sum + namesIn(one), 0);
  return Array.isArray(value) ? inner : inner + Object.keys(value).length;
}

export class Names {
  readonly #names: readonly { name: string; bytes: Uint8Array }[];
  /** As `\uXXXX`, a UTF-16 unit takes six bytes. */
  readonly #longest: number;

  constructor(names: Iterable<string>) {
    this.#names = Array.from(names, (name) => ({ name, bytes: encoder.encode(name) }));
    this.#longest = Math.max(0, ...this.#names.map(({ name }) => name.length * 6));
  }

  /** The name that the key's bytes spell; undefined when it is none of these. */
  find(bytes: Uint8Array, start: number, end: number): string | undefined {
    if (start < 0 || end - start > this.#longest) return undefined;
    for (let i = start; i < end; i++) {
      if (bytes[i] === BACKSLASH) {
        const text = unquote(bytes, start, end);
        return this.#names.find(({ name }) => name === text)?.name;
      }
    }
    for (const { name, bytes: spelled } of this.#names) {
      if (spelled.length !== end - start) continue;
      let i = 0;
      while (i < spelled.length && spelled[i] === bytes[start + i]) i++;
      if (i === spelled.length) return name;
    }
    return undefined;
  }
}
