// A client's Idempotency-Key, and the request that it stands for.
import { Problem } from "../../errors.ts";

const keyPattern = /^[\x21-\x7e]{1,255}$/;

export interface Idempotency {
  readonly key: string;
  readonly fingerprint: string;
}

export interface KeyedBody {
  /** All of a small body; of a large one the beginning. */
  readonly bytes: Uint8Array;
  /** Of a large body only: it decides where two of them begin alike. */
  readonly digest?: (() => Promise<string>) | undefined;
}

/** Undefined where the client sent no key. `call` is what the body is sent to: operation and model. */
export async function readIdempotency(
  headers: Headers,
  call: readonly [operation: string, model: string],
  body: KeyedBody,
): Promise<Idempotency | undefined> {
  const key = headers.get("Idempotency-Key");
  if (key === null) return undefined;
  if (!keyPattern.test(key)) {
    throw new Problem("INVALID_REQUEST", "Idempotency-Key: expected 1 to 255 visible ASCII characters");
  }
  return { key, fingerprint: await fingerprint(call, body) };
}

/** A large body goes by its beginning here, whatever length it states. */
async function fingerprint(call: readonly string[], { bytes, digest }: KeyedBody): Promise<string> {
  const size = digest ? "large" : bytes.byteLength;
  const head = new TextEncoder().encode(`${[...call, size].join("\n")}\n`);
  const whole = new Uint8Array(head.byteLength + bytes.byteLength);
  whole.set(head);
  whole.set(bytes, head.byteLength);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", whole)).toHex();
}

/** The key stands for a large body: whether for this one. */
export async function refuseOtherBody({ digest }: KeyedBody, known: { readonly digest?: string }): Promise<void> {
  if (digest && (await digest()) !== known.digest) {
    throw new Problem("IDEMPOTENCY_MISMATCH", "This Idempotency-Key was used for another body.");
  }
}
