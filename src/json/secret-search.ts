// Finds secrets in a stream of bytes, in every spelling of JSON (`\u0073`), URLs (`%73`) and base64.
//
// An unescaped secret is found by a fast search (plain-search.ts). Otherwise the secret has a first escape, and its
// characters before that stand as they are. So only the places with a backslash or a percent sign are decoded.
import { indexOfBytes } from "./json-bytes.ts";
import { PlainSearch } from "./plain-search.ts";
import { isMark, longestSpelling, Spellings } from "./secret-spellings.ts";

/** What `look` answers where it found one. */
export const FOUND = -1;

/** What is looked for: a secret, or what base64 makes of it. */
interface Needle {
  readonly codes: Uint8Array;
  /** By character the one that it is taken for: in base64 `-` is `+`. */
  readonly same: Uint8Array;
}

const marks = [0x5c, 0x25].map((code) => new Uint8Array([code]));
const anyMark = /[\\%]/;
/** A shorter key may be a common word, such as "none", so it is not searched for. A deployment refuses such keys. */
const leastLength = 8;
/** How many bytes are looked at one by one. Calling the native search costs about as much. */
const nearBytes = 256;

export class SecretSearch {
  /** No spelling takes more bytes. */
  readonly longest: number;
  private readonly needles: readonly Needle[];
  private readonly plain: PlainSearch;
  /** What `plain` looks for. */
  private readonly texts: readonly string[];
  /** 1 at every character that a needle has. */
  private readonly wanted = new Uint8Array(256);

  constructor(secrets: Iterable<string>) {
    this.needles = [...new Set(secrets)].filter(({ length }) => length >= leastLength).flatMap(needlesOf);
    const unescaped = this.needles.flatMap(variantsOf);
    this.plain = new PlainSearch(unescaped);
    this.texts = [...new Set(unescaped.map((bytes) => decoder.decode(bytes)))];
    this.longest = Math.max(0, ...this.needles.map(({ codes }) => codes.length * longestSpelling));
    for (const { codes, same } of this.needles) {
      for (const [code, meant] of same.entries()) if (codes.includes(meant)) this.wanted[code] = 1;
    }
  }

  /** Whether the text has one of the secrets in it. */
  finds(text: Uint8Array): boolean {
    return this.look(text, 0, text.length) === FOUND;
  }

  /** The same of a short text, which is encoded only where something in it is escaped. */
  findsInText(text: string): boolean {
    if (this.needles.length === 0) return false;
    return anyMark.test(text) ? this.finds(encoder.encode(text)) : this.texts.some((secret) => text.includes(secret));
  }

  /** Whether a header does, in its name or its value. */
  findsInHeaders(headers: Headers): boolean {
    return this.finds(encoder.encode([...headers].flat().join("\n")));
  }

  /**
   * `FOUND`, or the first place where a secret may begin that ends beyond `to`. The bytes before that place are clean.
   * Those after it must be searched again together with the next piece.
   */
  look(bytes: Uint8Array, from: number, to: number): number {
    if (this.needles.length === 0) return to;
    if (this.plain.finds(bytes, from, to)) return FOUND;
    let held = this.begunAt(bytes, from, to);
    for (const mark of marks) {
      held = Math.min(held, this.lookBehind(mark, bytes, from, to));
      if (held === FOUND) return FOUND;
    }
    return Math.max(held, to - this.longest);
  }

  /** Looks at what has its first escape at such a mark. */
  private lookBehind(mark: Uint8Array, bytes: Uint8Array, from: number, to: number): number {
    const spellings = new Spellings(bytes, to, this.wanted);
    let held = to;
    for (let at = nextOf(mark, bytes, from, to); at < to; at = nextOf(mark, bytes, at + 1, to)) {
      spellings.isOpen = false;
      const spelled = spellings.at(at);
      if (spellings.isOpen) held = Math.min(held, this.begunAt(bytes, from, at));
      for (const { code, end } of spelled) {
        for (const needle of this.needles) {
          const start = followed(needle, spellings, { bytes, from, at, to }, code, end);
          if (start === FOUND) return FOUND;
          held = Math.min(held, start);
        }
      }
    }
    return held;
  }

  /** The first place from which on there stands, up to `to`, what a needle begins with; `to` where there is none. */
  private begunAt(bytes: Uint8Array, from: number, to: number): number {
    if (to === from || this.wanted[bytes[to - 1] as number] !== 1) return to;
    return Math.min(...this.needles.map((needle) => begunAt(needle, bytes, from, to)));
  }
}

interface Spot {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly at: number;
  readonly to: number;
}

/** At `at` is an escape that spells `code`: where the needle has that, does the rest of it stand around? */
function followed(needle: Needle, spellings: Spellings, { bytes, from, at, to }: Spot, code: number, end: number) {
  const { codes, same } = needle;
  let held = to;
  for (let index = 0; index < codes.length && index <= at - from; index++) {
    if (codes[index] !== same[code] || !stands(needle, bytes, at - index, index)) continue;
    spellings.isOpen = false;
    if (goesOn(needle, index + 1, spellings, bytes, end, to)) return FOUND;
    if (spellings.isOpen) held = Math.min(held, at - index);
  }
  return held;
}

/** Whether the rest of the needle stands at `at`, in whatever spelling. */
function goesOn(needle: Needle, index: number, spellings: Spellings, bytes: Uint8Array, at: number, to: number) {
  const { codes, same } = needle;
  let places = [at];
  for (let i = index; i < codes.length && places.length > 0; i++) {
    const next = new Set<number>();
    for (const place of places) {
      if (place >= to) {
        spellings.isOpen = true;
        continue;
      }
      const byte = bytes[place] as number;
      if (same[byte] === codes[i]) next.add(place + 1);
      if (isMark(byte)) for (const { code, end } of spellings.at(place)) if (same[code] === codes[i]) next.add(end);
    }
    places = [...next];
  }
  return places.length > 0;
}

function begunAt(needle: Needle, bytes: Uint8Array, from: number, to: number): number {
  const most = Math.min(needle.codes.length - 1, to - from);
  for (let count = most; count > 0; count--) if (stands(needle, bytes, to - count, count)) return to - count;
  return to;
}

/** Whether the first `count` characters of the needle stand at `start` as they are. */
function stands({ codes, same }: Needle, bytes: Uint8Array, start: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (same[bytes[start + i] as number] !== codes[i]) return false;
  return true;
}

/** The first place from `at` on where the mark stands, or `to`. */
function nextOf(mark: Uint8Array, bytes: Uint8Array, at: number, to: number): number {
  const sought = mark[0];
  const near = Math.min(to, at + nearBytes);
  for (let i = at; i < near; i++) if (bytes[i] === sought) return i;
  if (near === to) return to;
  const found = indexOfBytes(bytes, near, to, mark);
  return found < 0 ? to : found;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const itself = Uint8Array.from({ length: 256 }, (_, code) => code);
const inBase64 = itself.slice();
inBase64[0x2d] = 0x2b;
inBase64[0x5f] = 0x2f;

function needlesOf(secret: string): Needle[] {
  const bytes = encoder.encode(secret);
  const encoded = [0, 1, 2].map((before) => ({ codes: encoder.encode(base64Of(bytes, before)), same: inBase64 }));
  return [{ codes: bytes, same: itself }, ...encoded];
}

/** Those characters of base64 that the secret alone decides where so many bytes of a group of three stand before it. */
function base64Of(bytes: Uint8Array, before: number): string {
  const text = btoa("\0".repeat(before) + String.fromCharCode(...bytes));
  return text.slice(Math.ceil((8 * before) / 6), Math.floor((8 * (before + bytes.length)) / 6));
}

/** How it is written where nothing is escaped: in base64 with either alphabet. */
function variantsOf({ codes, same }: Needle): Uint8Array[] {
  if (same === itself) return [codes];
  return [codes, codes.map((code) => (code === 0x2b ? 0x2d : code === 0x2f ? 0x5f : code))];
}
