// FLAC (RFC 9639): a sound without loss. Of each sample is stored what the two before it did not foresee.
import { concat } from "../../json/concat.ts";
import { Bits } from "./bits.ts";
import { sampleRate } from "./voice.ts";

/** Samples a frame; the last one may have fewer. */
export const frameSamples = 4096;

export function encodeFlac(samples: Int16Array): Uint8Array {
  return concat([new TextEncoder().encode("fLaC"), describeStream(samples, true), ...framesOf(samples)]);
}

/** The header that says what the stream is. */
export function describeStream(samples: Int16Array, isLastHeader: boolean): Uint8Array {
  const bits = new Bits().bits(isLastHeader ? 0x80 : 0, 8).bits(34, 24);
  bits.bits(frameSamples, 16).bits(frameSamples, 16).zeros(48);
  bits
    .bits(sampleRate, 20)
    .bits(0, 3)
    .bits(15, 5)
    .zeros(4 + 8)
    .bits(samples.length, 24);
  return bits.zeros(128).bytes;
}

export function framesOf(samples: Int16Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(samples.length / frameSamples) }, (_, n) =>
    frameOf(samples.subarray(n * frameSamples, (n + 1) * frameSamples), n),
  );
}

function frameOf(samples: Int16Array, number: number): Uint8Array {
  const isWhole = samples.length === frameSamples;
  // Of 16,000 Hertz, one channel and 16 bits.
  const head = new Bits()
    .bits(0xfff8, 16)
    .bits(isWhole ? 0xc5 : 0x75, 8)
    .bits(0x08, 8);
  numbered(head, number);
  if (!isWhole) head.bits(samples.length - 1, 16);
  const checked = head.bits(checksum(head.bytes, 0x07, 8), 8).bytes;
  const frame = concat([checked, residualsOf(samples)]);
  const sum = checksum(frame, 0x8005, 16);
  return concat([frame, Uint8Array.of(sum >> 8, sum & 255)]);
}

/** As UTF-8 spells a character of that number. */
function numbered(bits: Bits, number: number): void {
  if (number < 0x80) bits.bits(number, 8);
  else bits.bits(0xc0 | (number >> 6), 8).bits(0x80 | (number & 63), 8);
}

function residualsOf(samples: Int16Array): Uint8Array {
  const order = samples.length > 2 ? 2 : 0;
  const bits = new Bits().bits((8 + order) << 1, 8);
  for (let i = 0; i < order; i++) bits.bits(samples[i] as number, 16);
  const folded = new Uint32Array(samples.length - order);
  let sum = 0;
  for (let i = order; i < samples.length; i++) {
    const foreseen = order === 0 ? 0 : 2 * (samples[i - 1] as number) - (samples[i - 2] as number);
    const residual = (samples[i] as number) - foreseen;
    const value = residual < 0 ? -2 * residual - 1 : 2 * residual;
    folded[i - order] = value;
    sum += value;
  }
  // Rice's code: the lower bits as they are, the others as so many zeros.
  const lower = Math.min(14, Math.max(0, Math.floor(Math.log2(sum / Math.max(1, folded.length) + 1))));
  bits.bits(0, 6).bits(lower, 4);
  for (const value of folded)
    bits
      .zeros(value >> lower)
      .bits(1, 1)
      .bits(value, lower);
  return bits.align().bytes;
}

function checksum(bytes: Uint8Array, polynomial: number, width: 8 | 16): number {
  const [top, mask] = [1 << (width - 1), (1 << width) - 1];
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << (width - 8);
    for (let bit = 0; bit < 8; bit++) sum = (sum & top ? (sum << 1) ^ polynomial : sum << 1) & mask;
  }
  return sum;
}
