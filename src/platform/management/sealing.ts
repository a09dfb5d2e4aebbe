// Secrets at rest: AES-GCM under a key that HKDF derives from SIGNING_SECRET for this purpose alone.

const encoder = new TextEncoder();
const ivBytes = 12;

/** Bound to its place by `label`: it opens nowhere else. */
export async function seal(text: string, label: string, secret: string): Promise<Uint8Array> {
  const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
  const sealed = await crypto.subtle.encrypt(parameters(iv, label), await keyOf(secret), encoder.encode(text));
  const whole = new Uint8Array(ivBytes + sealed.byteLength);
  whole.set(iv);
  whole.set(new Uint8Array(sealed), ivBytes);
  return whole;
}

/** The secrets are tried in turn, so that what an old one sealed still opens; undefined where none does. */
export async function unseal(
  whole: Uint8Array,
  label: string,
  secrets: readonly string[],
): Promise<string | undefined> {
  const [iv, sealed] = [whole.subarray(0, ivBytes), whole.subarray(ivBytes)];
  for (const secret of secrets) {
    const opened = await crypto.subtle
      .decrypt(parameters(iv, label), await keyOf(secret), sealed)
      .catch(() => undefined);
    if (opened) return new TextDecoder().decode(opened);
  }
  return undefined;
}

function parameters(iv: Uint8Array, label: string) {
  return { name: "AES-GCM", iv, additionalData: encoder.encode(label) };
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, ["deriveKey"]);
  const info = encoder.encode("sluice container registry auth");
  const derivation = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  return crypto.subtle.deriveKey(derivation, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}
