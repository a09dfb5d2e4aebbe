// The bytes of an upstream's answer, in bounded time and memory, and the JSON that they spell.
import { Problem } from "../errors.ts";
import { type ByteSource, type Head, parseJson, readHead, statedLength } from "../wire/body.ts";
import type { Upstream } from "./upstream.ts";

export type From = Pick<Upstream, "key" | "times">;
export type ReadBytes = { readonly bytes: Uint8Array } | { readonly large: ByteSource };

export function isJson({ headers }: Response): boolean {
  return /^application\/([\w.+-]+\+)?json\b/i.test(headers.get("Content-Type") ?? "");
}

/** All of it, or where there is more than so many bytes, what came so far and the reader of the rest. */
export async function readBytes(response: Response, { times }: From, wholeBytes: number): Promise<ReadBytes> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), times.bodyMs);
  const head = isSmall(response)
    ? await readSmall(response, late.signal)
    : await readHead(response.body, wholeBytes, undefined, late.signal);
  clearTimeout(timer);
  if (late.signal.aborted) throw new Problem("UPSTREAM_TIMEOUT", "The model service's answer did not end in time.");
  if ("fault" in head) throw new Problem("UPSTREAM_TRUNCATED", "The model service's answer ended in the middle.");
  const bytes = withoutMark(head.ended ? head.bytes : head.head);
  return head.ended ? { bytes } : { large: { head: bytes, reader: head.reader } };
}

const smallBytes = 16 * 1024;

/** HTTP holds a body to its stated length, unless the body grows when it is decoded. */
function isSmall({ headers }: Response): boolean {
  const length = statedLength(headers);
  return length !== undefined && length <= smallBytes && !headers.has("Content-Encoding");
}

/** One read of the runtime's own, for most answers: it costs half of what a reader does. */
async function readSmall(response: Response, late: AbortSignal): Promise<Head> {
  const given = Promise.withResolvers<Head>();
  late.addEventListener("abort", () => given.resolve({ fault: "source-gone" }), { once: true });
  const whole = response.arrayBuffer().then(
    (buffer): Head => ({ ended: true, bytes: new Uint8Array(buffer) }),
    (): Head => ({ fault: "source-gone" }),
  );
  return Promise.race([whole, given.promise]);
}

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
export function parseAnswer(bytes: Uint8Array, key: string): ParsedAnswer | undefined {
  const parsed = parseJson(bytes);
  if ("fault" in parsed) return undefined;
  const text = new TextDecoder().decode(bytes);
  const holdsKey = text.includes(key) || (text.includes("\\") && JSON.stringify(parsed.value).includes(key));
  if (holdsKey) console.error(JSON.stringify({ upstream: "answered with our key", setting: "UPSTREAM_API_KEY" }));
  return { value: parsed.value, holdsKey };
}
