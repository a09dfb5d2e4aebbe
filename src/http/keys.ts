// Keys as clients send them, and how they are compared.

const bearer = /^bearer +/i;

/** `Bearer KEY` or the bare key; undefined where there is none. */
export function readKey(headers: Headers): string | undefined {
  const value = headers.get("authorization")?.trim().replace(bearer, "").trim();
  return value === "" || value === undefined || value.length > maxKeyLength ? undefined : value;
}

export const maxKeyLength = 8192;
const encoder = new TextEncoder();

/** Tells nothing by its timing: both sides are hashed first, so that their lengths are equal. */
export async function sameKey(given: string, expected: string): Promise<boolean> {
  const [left, right] = await Promise.all([digest(given), digest(expected)]);
  return crypto.subtle.timingSafeEqual(left, right);
}

/** The value that belongs to a key, where every candidate is compared whatever the first ones say. */
export async function findByKey<T>(given: string, candidates: ReadonlyMap<string, T>): Promise<T | undefined> {
  let found: T | undefined;
  for (const [key, value] of candidates) {
    if (await sameKey(given, key)) found = value;
  }
  return found;
}

function digest(value: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", encoder.encode(value));
}
