// H.264 (ITU-T H.264), as little of it as a film needs that is one picture and a camera that comes closer. The first frame has the
// picture's own samples, without loss. Each later one only says from where in it each block is taken.
import { concat } from "../../json/concat.ts";
import type { Picture } from "../painter/picture.ts";
import { Bits } from "./bits.ts";

/** A film's sides are multiples of it. */
export const blockSide = 16;

const unitTypes = { laterFrame: 0x01, firstFrame: 0x65, sequence: 0x67, picture: 0x68 } as const;
const level = 31;
const mostFrames = 127;

export interface Film {
  readonly width: number;
  readonly height: number;
  readonly sequence: Uint8Array;
  readonly picture: Uint8Array;
  readonly frames: readonly Uint8Array[];
}

/** `zoom`: how much closer the camera is at the end, as a share. */
export function encodeFilm(first: Picture, count: number, zoom: number): Film {
  const { width, height } = first;
  const [across, down] = [width / blockSide, height / blockSide];
  const frames = Array.from({ length: Math.min(count, mostFrames) }, (_, n) =>
    n === 0 ? firstFrame(first) : laterFrame(across, down, n, 1 - 1 / (1 + (zoom * n) / count)),
  );
  return { width, height, sequence: sequenceUnit(across, down), picture: pictureUnit(), frames };
}

/** Baseline, whole frames, one reference, no frame out of order; the colours are those of HD television. */
function sequenceUnit(across: number, down: number): Uint8Array {
  const bits = new Bits().bits(66, 8).bits(0xc0, 8).bits(level, 8);
  bits
    .unsigned(0, 0, 0, 4, 1)
    .bits(0, 1)
    .unsigned(across - 1, down - 1);
  bits.bits(0b11, 2).bits(0, 1).bits(1, 1);
  bits.bits(0b00, 2).bits(1, 1).bits(5, 3).bits(0, 1).bits(1, 1).bits(1, 8).bits(1, 8).bits(1, 8);
  bits.bits(0b00000, 5).bits(1, 1).bits(1, 1).unsigned(0, 0, 10, 10, 0, 1);
  return unit(unitTypes.sequence, endOf(bits));
}

function pictureUnit(): Uint8Array {
  const bits = new Bits().unsigned(0, 0).bits(0, 2).unsigned(0, 0, 0).bits(0, 3).signed(0, 0, 0).bits(0b100, 3);
  return unit(unitTypes.picture, endOf(bits));
}

/** Every block as samples. None is below 16, so nothing in them looks like the start of a unit. */
function firstFrame(first: Picture): Uint8Array {
  const head = new Bits().unsigned(0, 7, 0).bits(0, 4).unsigned(0).bits(0, 8).bits(0, 2).signed(0).unsigned(1);
  const [begin, next] = [head.unsigned(25).align().bytes, new Bits().unsigned(25).align().bytes];
  const across = first.width / blockSide;
  const blocks = Array.from({ length: across * (first.height / blockSide) }, (_, n) => [
    n === 0 ? begin : next,
    samplesOf(first, (n % across) * blockSide, Math.floor(n / across) * blockSide),
  ]);
  return unit(unitTypes.firstFrame, concat([...blocks.flat(), endOf(new Bits())]));
}

/** A block's lightness, and at half the size its two colours. */
function samplesOf({ width, rgb }: Picture, left: number, top: number): Uint8Array {
  const samples = new Uint8Array(384);
  const colors = new Float32Array(128);
  for (let y = 0, at = 0; y < blockSide; y++) {
    for (let x = 0; x < blockSide; x++, at++) {
      const from = ((top + y) * width + left + x) * 3;
      const [r, g, b] = [rgb[from] as number, rgb[from + 1] as number, rgb[from + 2] as number];
      const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
      samples[at] = Math.round(16 + (light * 219) / 255);
      const half = (y >> 1) * 8 + (x >> 1);
      colors[half] = (colors[half] as number) + (b - light) / 1.8556;
      colors[64 + half] = (colors[64 + half] as number) + (r - light) / 1.5748;
    }
  }
  for (let i = 0; i < 128; i++) samples[256 + i] = Math.round(128 + ((colors[i] as number) / 4) * (224 / 255));
  return samples;
}

type Motion = readonly [x: number, y: number];

/** Taken from the first frame alone, so that no fault adds up. Each motion is told as its difference to what is expected. */
function laterFrame(across: number, down: number, number: number, closer: number): Uint8Array {
  const bits = new Bits()
    .unsigned(0, 5, 0)
    .bits(1, 4)
    .bits(2 * number, 8)
    .bits(0, 2)
    .signed(0)
    .unsigned(1);
  const away = (at: number, count: number) => Math.round(-(at + 0.5 - count / 2) * blockSide * closer * 4);
  const motionAt = (x: number, y: number): Motion | undefined =>
    x < 0 || y < 0 || x >= across ? undefined : [away(x, across), away(y, down)];
  for (let y = 0; y < down; y++) {
    for (let x = 0; x < across; x++) {
      const [left, up] = [motionAt(x - 1, y), motionAt(x, y - 1)];
      const [toX, toY] = expected(left, up, motionAt(x + 1, y - 1) ?? motionAt(x - 1, y - 1));
      bits
        .unsigned(0, 0)
        .signed(away(x, across) - toX, away(y, down) - toY)
        .unsigned(0);
    }
  }
  return unit(unitTypes.laterFrame, endOf(bits));
}

/** The middle one of the neighbours' motions. Where there is only one neighbour, its own. */
function expected(left: Motion | undefined, up: Motion | undefined, corner: Motion | undefined): Motion {
  const there = [left, up, corner].filter((motion) => motion !== undefined);
  const [only] = there;
  if (only !== undefined && there.length === 1) return only;
  const middle = (n: 0 | 1) => [left, up, corner].map((motion) => motion?.[n] ?? 0).sort((a, b) => a - b)[1] as number;
  return [middle(0), middle(1)];
}

/** A one, and zeros up to the next whole byte. */
function endOf(bits: Bits): Uint8Array {
  return bits.bits(1, 1).align().bytes;
}

/** Two zeros and a number below four would look like the start of a unit: a three parts them. */
function unit(type: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(1 + payload.length + (payload.length >> 1));
  bytes[0] = type;
  let [at, zeros] = [1, 0];
  for (const byte of payload) {
    if (zeros === 2 && byte <= 3) {
      bytes[at++] = 3;
      zeros = 0;
    }
    bytes[at++] = byte;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return bytes.subarray(0, at);
}
