// The bytes of an upstream's answer, in bounded time and memory, and the JSON that they spell.
import { Problem } from "../../errors.ts";
import { type Head, isSmall, lengthOf, readHead, readOn, readSmall, readText } from "../../http/body.ts";
import { HeldBody, isShort } from "../../http/held-body.ts";
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

/** All of it, or where there is more than so many bytes, what came so far and the reader of the rest. */
export type AnswerBody = { readonly held: HeldBody } | { readonly large: ByteSource };

export function readAnswer(answered: Answered, howMuch: HowMuch): Promise<AnswerBody> {
  const length = lengthOf(answered.response);
  return isShort(length) ? readShort(answered, length) : readLonger(answered, length, howMuch);
}

async function readShort({ response, clock }: Answered, length: number): Promise<AnswerBody> {
  try {
    return { held: HeldBody.ofText(await clock.race(readText(response)), length, true) };
  } catch {
    throw clock.isOver ? tookTooLong : endedInTheMiddle;
  } finally {
    clock.stop();
  }
}

async function readLonger(
  { response, clock }: Answered,
  length: number | undefined,
  { headBytes, more }: HowMuch,
): Promise<AnswerBody> {
  let head = isSmall(length)
    ? await clock.race(readSmall(response)).catch(tooLate)
    : await readHead(response, headBytes, clock.signal);
  clock.stop();
  if (more && "head" in head) {
    await more.turn();
    head = await readOn(head, more.wholeBytes);
  }
  if (clock.isOver) throw tookTooLong;
  if ("fault" in head) throw endedInTheMiddle;
  if (head.ended) return { held: HeldBody.ofBytes(withoutMark(head.bytes)) };
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
export function parseAnswer(body: HeldBody, keySearch: SecretSearch): ParsedAnswer | undefined {
  const parsed = body.json();
  if ("fault" in parsed) return undefined;
  const holdsKey = body.holds(keySearch);
  if (holdsKey) logOwnKey();
  return { value: parsed.value, holdsKey };
}
