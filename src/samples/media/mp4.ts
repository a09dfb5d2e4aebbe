// MP4: the boxes around a film's frames.
import { concat } from "../../json/concat.ts";
import type { Film } from "./h264.ts";

/** Units of time in a second. */
const timescale = 600;
const encoder = new TextEncoder();

export function mp4Of(film: Film, framesPerSecond: number): Uint8Array {
  const samples = film.frames.map((frame) => concat([words(frame.length), frame]));
  const type = box("ftyp", encoder.encode("isom"), words(512), encoder.encode("isomiso2avc1mp41"));
  const before = (from: number) => movieOf(film, samples, timescale / framesPerSecond, from);
  // Its own length is part of what it says.
  const movie = before(type.length + before(0).length + 8);
  return concat([type, movie, box("mdat", ...samples)]);
}

/** Numbers of four bytes. */
function words(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  for (const [n, value] of values.entries()) view.setUint32(n * 4, value);
  return bytes;
}

function box(type: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 8);
  return concat([words(length), encoder.encode(type), ...parts]);
}

/** Sixteen bits before and behind the point. */
const unturned = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000] as const;

function movieOf(film: Film, samples: readonly Uint8Array[], duration: number, from: number): Uint8Array {
  const { width, height } = film;
  const whole = samples.length * duration;
  return box(
    "moov",
    box("mvhd", words(0, 0, 0, timescale, whole, 0x10000, 0x1000000, 0, 0, ...unturned, 0, 0, 0, 0, 0, 0, 2)),
    box(
      "trak",
      box("tkhd", words(3, 0, 0, 1, 0, whole, 0, 0, 0, 0, ...unturned, width * 0x10000, height * 0x10000)),
      box(
        "mdia",
        box("mdhd", words(0, 0, 0, timescale, whole, 0x55c40000)),
        box("hdlr", words(0, 0), encoder.encode("vide"), words(0, 0, 0), encoder.encode("Video\0")),
        box(
          "minf",
          box("vmhd", words(1, 0, 0)),
          box("dinf", box("dref", words(0, 1), box("url ", words(1)))),
          tablesOf(film, samples, duration, from),
        ),
      ),
    ),
  );
}

/** Where each frame lies and how long it is shown: one chunk, and a key frame at its beginning. */
function tablesOf(film: Film, samples: readonly Uint8Array[], duration: number, from: number): Uint8Array {
  const sizes = samples.map(({ length }) => length);
  return box(
    "stbl",
    box("stsd", words(0, 1), describe(film)),
    box("stts", words(0, 1, samples.length, duration)),
    box("stss", words(0, 1, 1)),
    box("stsc", words(0, 1, 1, samples.length, 1)),
    box("stsz", words(0, 0, samples.length, ...sizes)),
    box("stco", words(0, 1, from)),
  );
}

function describe({ width, height, sequence, picture }: Film): Uint8Array {
  const length = ({ length }: Uint8Array) => Uint8Array.of(length >> 8, length & 255);
  const [, profile = 0, compatible = 0, level = 0] = sequence;
  const decoder = box(
    "avcC",
    ...[Uint8Array.of(1, profile, compatible, level, 0xff, 0xe1), length(sequence), sequence],
    ...[Uint8Array.of(1), length(picture), picture],
  );
  const size = words(0, 1, 0, 0, 0, 0, width * 0x10000 + height, 0x480000, 0x480000, 0, 0x10000);
  const unnamed = new Uint8Array(32);
  return box("avc1", size, unnamed.subarray(2), words(0x18ffff), decoder);
}
