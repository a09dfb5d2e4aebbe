// The bytes of an upstream's answer, in bounded time and memory, and the JSON that they spell.
import { Problem } from "../../errors.ts";
import { type Head, isSmall, parseJson, readHead, readOn, readSmall } from "../../http/body.ts";
import type { ByteSource } from "../../json/byte-reader.ts";
import type { SecretSearch } from "../../json/secret-search.ts";
import { logOwnKey } from "./own-keys.ts";
import type { Answered } from "./upstream.ts";

export type ReadBytes = { readonly bytes: Uint8Array } | { readonly large: ByteSource };

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
export async function readBytes({ response, clock }: Answered, { headBytes, more }: HowMuch): Promise<ReadBytes> {
  let head = isSmall(response)
    ? await clock.race(readSmall(response)).catch(tooLate)
    : await readHead(response, headBytes, clock.signal);
  clock.stop();
  if (more && "head" in head) {
    await more.turn();
    head = await readOn(head, more.wholeBytes);
  }
  if (clock.isOver) throw new Problem("UPSTREAM_TIMEOUT", "The model service's answer did not end in time.");
  if ("fault" in head) throw new Problem("UPSTREAM_TRUNCATED", "The model service's answer ended in the middle.");
  const bytes = withoutMark(head.ended ? head.bytes : head.head);
  return head.ended ? { bytes } : { large: { head: bytes, reader: head.reader } };
}

const tooLate = (): Head => ({ fault: "source-gone" });

/** Some services write a byte order mark in front of their JSON. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

export interface ParsedAnswer {
  readonly value: unknown;
  /** It says our key back: none of it may go anywhere. */
  readonly holdsKey: boolean;
}

/** Undefined for what is no JSON. */
export function parseAnswer(bytes: Uint8Array, keySearch: SecretSearch): ParsedAnswer | undefined {
  const parsed = parseJson(bytes);
  if ("fault" in parsed) return undefined;
  const holdsKey = keySearch.finds(bytes);
  if (holdsKey) logOwnKey();
  return { value: parsed.value, holdsKey };
}
