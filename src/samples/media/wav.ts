// WAV: a sound as it is, behind a header.
import { sampleRate } from "./voice.ts";

const headerBytes = 44;
const encoder = new TextEncoder();

/** 16 bits, one channel. */
export function encodeWav(samples: Int16Array): Uint8Array {
  const bytes = new Uint8Array(headerBytes + samples.length * 2);
  const view = new DataView(bytes.buffer);
  bytes.set(encoder.encode("RIFF"));
  view.setUint32(4, bytes.length - 8, true);
  bytes.set(encoder.encode("WAVEfmt "), 8);
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  bytes.set(encoder.encode("data"), 36);
  view.setUint32(40, samples.length * 2, true);
  for (const [i, sample] of samples.entries()) view.setInt16(headerBytes + i * 2, sample, true);
  return bytes;
}
