// The bytes of an upstream's answer, in bounded time and memory, and the JSON that they spell.
import { Problem } from "../../errors.ts";
import {
  type Head,
  heldLength,
  isSmall,
  parseJson,
  readHead,
  readOn,
  readSmall,
  shallowBytes,
} from "../../http/body.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import type { SecretSearch } from "../../json/secret-search.ts";
import { logOwnKey } from "./own-keys.ts";
import type { Answered } from "./upstream.ts";

export function isJson({ headers }: Response): boolean {
  return /^application\/([\w.+-]+\+)?json\b/i.test(headers.get("Content-Type") ?? "");
}

/** How much of an answer is held. */
export interface HowMuch {
  readonly headBytes: number;
  /** Of a larger one so much, once its turn has come. */
  readonly more?: { readonly wholeBytes: number; turn(): Promise<void> } | undefined;
}

/** A small answer: its bytes, or of a short one the text that the runtime read, and how many bytes that was. */
type Held = { readonly bytes: Uint8Array } | { readonly text: string; readonly statedBytes: number };

/** All of it, or where there is more than so many bytes, what came so far and the reader of the rest. */
export type AnswerBody = Held | { readonly large: ByteSource };

/** A short one as text: an ArrayBuffer and a decoder on the way to a string cost a twentieth of a poll. */
export function readAnswer(answered: Answered, howMuch: HowMuch): Promise<AnswerBody> {
  const length = heldLength(answered.response);
  const isShort = length !== undefined && length <= shallowBytes;
  return isShort ? readShort(answered, length) : readLonger(answered, howMuch);
}

async function readShort({ response, clock }: Answered, statedBytes: number): Promise<AnswerBody> {
  try {
    return { text: await clock.race(response.text()), statedBytes };
  } catch {
    throw clock.isOver ? tookTooLong : endedInTheMiddle;
  } finally {
    clock.stop();
  }
}

async function readLonger({ response, clock }: Answered, { headBytes, more }: HowMuch): Promise<AnswerBody> {
  let head = isSmall(response)
    ? await clock.race(readSmall(response)).catch(tooLate)
    : await readHead(response, headBytes, clock.signal);
  clock.stop();
  if (more && "head" in head) {
    await more.turn();
    head = await readOn(head, more.wholeBytes);
  }
  if (clock.isOver) throw tookTooLong;
  if ("fault" in head) throw endedInTheMiddle;
  if (head.ended) return { bytes: withoutMark(head.bytes) };
  return { large: { head: withoutMark(head.head), reader: head.reader } };
}

/** Some services write a byte order mark in front of their JSON. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

const tooLate = (): Head => ({ fault: "source-gone" });
const tookTooLong = new Problem("UPSTREAM_TIMEOUT", "The model service's answer did not end in time.");
const endedInTheMiddle = new Problem("UPSTREAM_TRUNCATED", "The model service's answer ended in the middle.");

export interface ParsedAnswer {
  readonly value: unknown;
  /** It says our key back: none of it may go anywhere. */
  readonly holdsKey: boolean;
}

/** Undefined for what is no JSON. */
export function parseAnswer(held: Held, keySearch: SecretSearch): ParsedAnswer | undefined {
  const parsed = "text" in held ? parseText(held.text, held.statedBytes) : parseJson(held.bytes);
  if ("fault" in parsed) return undefined;
  const holdsKey = "text" in held ? keySearch.findsInText(held.text) : keySearch.finds(held.bytes);
  if (holdsKey) logOwnKey();
  return { value: parsed.value, holdsKey };
}

/** No text that is so short is nested too deep. */
function parseText(text: string, statedBytes: number): ReturnType<typeof parseJson> {
  try {
    if (isDecoded(text, statedBytes)) return { value: JSON.parse(text) };
  } catch {}
  return { fault: "not-json" };
}

const encoder = new TextEncoder();
const markBytes = 3;

/**
 * Whether nothing of the bytes was lost. The runtime drops a byte order mark, and writes U+FFFD, of three bytes, for what is
 * no UTF-8: then the length is nearly always another. As U+FFFD there passes only what happens to keep it: a character of four
 * bytes that lacks its last one, or what grows by as much as the mark took.
 */
function isDecoded(text: string, statedBytes: number): boolean {
  if (text.length === statedBytes && !text.includes("\ufffd")) return true;
  const { byteLength } = encoder.encode(text);
  return byteLength === statedBytes || byteLength === statedBytes - markBytes;
}
