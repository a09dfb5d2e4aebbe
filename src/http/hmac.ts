// HMAC-SHA-256, and SHA-256 of short texts, without a promise. Every submit and every first status signs short texts, and
// a call of WebCrypto takes ten times as long as hashing their four blocks. `hmac.test.ts` compares it with WebCrypto.

const blockBytes = 64;
const macBytes = 32;
/** After the text come one byte of padding and its length in eight. */
const trailerBytes = 9;

/** The first 32 bits of the fractions of the square and cube roots of the first primes: FIPS 180-4, 4.2.2 and 5.3.3. */
const primes = firstPrimes(64);
const initialState = Int32Array.from(primes.slice(0, 8), (prime) => fractionOf(Math.sqrt(prime)));
const roundConstants = Int32Array.from(primes, (prime) => fractionOf(Math.cbrt(prime)));

function firstPrimes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

function fractionOf(root: number): number {
  return ((root % 1) * 2 ** 32) | 0;
}

/** Between two calls nothing in them counts: made anew for each, they would cost as much as the blocks. */
const schedule = new Int32Array(64);
const state = new Int32Array(initialState.length);
const hash = new DataView(new ArrayBuffer(macBytes));
const hashed = new Uint8Array(hash.buffer);
/** The first bits of the hash, as signatures use them. */
const starts = { 64: new Uint8Array(hash.buffer, 0, 8), 128: new Uint8Array(hash.buffer, 0, 16) };
let padded = new DataView(new ArrayBuffer(16 * blockBytes));
let room = new Uint8Array(padded.buffer);

const encoder = new TextEncoder();

export class HmacKey {
  /** SHA-256 after the key's own block, inside and outside. */
  readonly #inner: Int32Array;
  readonly #outer: Int32Array;

  constructor(secret: Uint8Array) {
    const key = secret.byteLength > blockBytes ? hashOn(initialState, 0, place(secret)).slice() : secret;
    this.#inner = afterKey(key, 0x36);
    this.#outer = afterKey(key, 0x5c);
  }

  sign(text: string): Uint8Array<ArrayBuffer> {
    return this.#sign(text).slice();
  }

  /** The first bits of the mac, in hex. */
  signHex(text: string, bits: 64 | 128): string {
    this.#sign(text);
    return starts[bits].toHex();
  }

  #sign(text: string): Uint8Array<ArrayBuffer> {
    const inner = hashOn(this.#inner, blockBytes, placeText(text));
    return hashOn(this.#outer, blockBytes, place(inner));
  }
}

/** SHA-256 of a short text, in hex: at once, for the same reason. */
export function hashHex(text: string): string {
  return hashOn(initialState, 0, placeText(text)).toHex();
}

function afterKey(key: Uint8Array, pad: number): Int32Array {
  const block = new Uint8Array(blockBytes);
  block.set(key);
  const begun = initialState.slice();
  mix(begun, new DataView(block.map((byte) => byte ^ pad).buffer), 0);
  return begun;
}

/** A message lies in `room` until it is hashed; these answer with its length. */
function place(message: Uint8Array): number {
  makeRoom(message.byteLength);
  room.set(message);
  return message.byteLength;
}

/** Nearly all that is signed is ASCII, and a loop is faster than the encoder's call. */
function placeText(text: string): number {
  makeRoom(text.length);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return place(encoder.encode(text));
    room[at] = code;
  }
  return text.length;
}

function makeRoom(messageBytes: number): void {
  const length = paddedLength(messageBytes);
  if (length <= room.byteLength) return;
  padded = new DataView(new ArrayBuffer(length));
  room = new Uint8Array(padded.buffer);
}

function paddedLength(messageBytes: number): number {
  return blockBytes * Math.ceil((messageBytes + trailerBytes) / blockBytes);
}

/** The hash of the message in `room`, of which so many bytes are in the state already. It holds until the next call. */
function hashOn(begun: Int32Array, begunBytes: number, messageBytes: number): Uint8Array<ArrayBuffer> {
  const length = paddedLength(messageBytes);
  room[messageBytes] = 0x80;
  room.fill(0, messageBytes + 1, length);
  // In bits; the upper half of the eight bytes stays zero for what is signed here.
  padded.setUint32(length - 4, 8 * (begunBytes + messageBytes));
  state.set(begun);
  for (let at = 0; at < length; at += blockBytes) mix(state, padded, at);
  for (let n = 0; n < state.length; n++) hash.setInt32(4 * n, state[n] as number);
  return hashed;
}

type Eight = [number, number, number, number, number, number, number, number];
const rotate = (word: number, by: number) => (word >>> by) | (word << (32 - by));

/** One block: FIPS 180-4, 6.2.2. */
function mix(begun: Int32Array, message: DataView, at: number): void {
  const w = schedule;
  for (let t = 0; t < 16; t++) w[t] = message.getInt32(at + 4 * t);
  for (let t = 16; t < 64; t++) {
    const early = w[t - 15] as number;
    const late = w[t - 2] as number;
    const sigma0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const sigma1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    w[t] = sigma1 + (w[t - 7] as number) + sigma0 + (w[t - 16] as number);
  }
  // Read by index: an iterator would cost as much as the rounds.
  const before = begun as unknown as Eight;
  let a = before[0];
  let b = before[1];
  let c = before[2];
  let d = before[3];
  let e = before[4];
  let f = before[5];
  let g = before[6];
  let h = before[7];
  for (let t = 0; t < 64; t++) {
    const sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + sum1 + choice + (roundConstants[t] as number) + (w[t] as number)) | 0;
    const sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + sum0 + majority) | 0;
  }
  begun[0] = before[0] + a;
  begun[1] = before[1] + b;
  begun[2] = before[2] + c;
  begun[3] = before[3] + d;
  begun[4] = before[4] + e;
  begun[5] = before[5] + f;
  begun[6] = before[6] + g;
  begun[7] = before[7] + h;
}
