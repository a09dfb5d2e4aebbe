// Ogg: FLAC's frames, a page each (RFC 3533, and FLAC's own mapping into Ogg).
import { concat } from "../../json/concat.ts";
import { describeStream, frameSamples, framesOf } from "./flac.ts";

const flags = { first: 2, last: 4 } as const;
const encoder = new TextEncoder();

export function encodeOgg(samples: Int16Array): Uint8Array {
  const mapping = Uint8Array.of(0x7f, 0x46, 0x4c, 0x41, 0x43, 1, 0, 0, 1);
  const head = concat([mapping, encoder.encode("fLaC"), describeStream(samples, false)]);
  // No maker and no comments: two numbers of four bytes.
  const comments = Uint8Array.of(0x84, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0);
  const frames = framesOf(samples);
  return concat([
    page(head, 0, 0, flags.first),
    page(comments, 1, 0, 0),
    ...frames.map((frame, n) => {
      const isLast = n === frames.length - 1;
      return page(frame, n + 2, isLast ? samples.length : (n + 1) * frameSamples, isLast ? flags.last : 0);
    }),
  ]);
}

/** `until`: how many samples were played at its end. */
function page(packet: Uint8Array, number: number, until: number, flag: number): Uint8Array {
  const segments = Math.floor(packet.length / 255) + 1;
  const bytes = new Uint8Array(27 + segments + packet.length);
  const view = new DataView(bytes.buffer);
  bytes.set(encoder.encode("OggS"));
  bytes[5] = flag;
  view.setUint32(6, until, true);
  view.setUint32(14, 1, true);
  view.setUint32(18, number, true);
  bytes[26] = segments;
  bytes.fill(255, 27, 26 + segments);
  bytes[26 + segments] = packet.length % 255;
  bytes.set(packet, 27 + segments);
  view.setUint32(22, checksum(bytes), true);
  return bytes;
}

const table = Uint32Array.from({ length: 256 }, (_, n) => {
  let sum = n << 24;
  for (let bit = 0; bit < 8; bit++) sum = sum & 0x80000000 ? (sum << 1) ^ 0x04c11db7 : sum << 1;
  return sum;
});

function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum = (sum << 8) ^ (table[(sum >>> 24) ^ byte] as number);
  return sum >>> 0;
}
