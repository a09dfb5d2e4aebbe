// The id of an admission: when it was, and enough chance to be the only one. It sorts by time.

/** Crockford's base 32, lower case: no i, l, o, u. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 10;
const chanceDigits = 13;
const chanceBytes = 8;

/** The first digit of each part has fewer values: 48 bits in 10 digits, 64 in 13. */
export const admissionPattern = "[0-7][0-9a-hjkmnp-tv-z]{9}[0-9a-f][0-9a-hjkmnp-tv-z]{12}";

export function newAdmission(now: number, chance = crypto.getRandomValues(new Uint8Array(chanceBytes))): string {
  const bits = chance.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return encode(BigInt(now), timeDigits) + encode(bits, chanceDigits);
}

/** The moment of an admission, in milliseconds. */
export function admittedAt(admission: string): number {
  return [...admission.slice(0, timeDigits)].reduce((sum, digit) => sum * 32 + alphabet.indexOf(digit), 0);
}

function encode(value: bigint, digits: number): string {
  let text = "";
  for (let rest = value; text.length < digits; rest >>= 5n) text = alphabet[Number(rest & 31n)] + text;
  return text;
}
