// The id of an admission: when it was, and enough chance to be the only one. It sorts by time.

/** Crockford's base 32, lower case: no i, l, o, u. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 10;
const chanceDigits = 13;
const chanceBytes = 8;

/** The time's first digit has fewer values: 48 bits in 10 digits. Chance has 64 in 13, and the bit that is left is the mark. */
export const admissionPattern = "[0-7][0-9a-hjkmnp-tv-z]{22}";
const markAt = timeDigits;
const mark = 16;

export function newAdmission(now: number, chance = crypto.getRandomValues(new Uint8Array(chanceBytes))): string {
  let time = "";
  for (let rest = now; time.length < timeDigits; rest = Math.floor(rest / 32)) time = alphabet.charAt(rest % 32) + time;
  const halves = new DataView(chance.buffer, chance.byteOffset);
  let [high, low] = [halves.getUint32(0), halves.getUint32(4)];
  let random = "";
  while (random.length < chanceDigits) {
    random = alphabet.charAt(low & 31) + random;
    low = (low >>> 5) | (high << 27);
    high >>>= 5;
  }
  return time + random;
}

/** The moment of an admission, in milliseconds. */
export function admittedAt(admission: string): number {
  return [...admission.slice(0, timeDigits)].reduce((sum, digit) => sum * 32 + alphabet.indexOf(digit), 0);
}

/**
 * Marks the id of a `runsync` that is relayed as `run`, so that others can join its job, or answered from the cache.
 * Its handle begins with `sync-` all the same.
 */
export function asSync(admission: string): string {
  const marked = alphabet.charAt(alphabet.indexOf(admission.charAt(markAt)) | mark);
  return admission.slice(0, markAt) + marked + admission.slice(markAt + 1);
}

export function isAsSync(admission: string): boolean {
  return alphabet.indexOf(admission.charAt(markAt)) >= mark;
}
