// WebP that was given to samples: both of its codings, as other programs write them, and hostile.
import { describe, expect, it } from "vitest";
import { readPicture } from "../../src/samples/given/read-picture.ts";
import { heldPixels } from "../../src/samples/given/unreadable.ts";
import type { Picture } from "../../src/samples/painter/picture.ts";
import { givenWebp } from "./given-webp-files.ts";
import { expectLikeness, quadrants, quarters } from "./quadrants.ts";

type Name = keyof typeof givenWebp;
type Rgb = readonly number[];

const fileOf = (name: Name) => Uint8Array.fromBase64(givenWebp[name]);
async function read(bytes: Uint8Array): Promise<Picture> {
  const picture = await readPicture(bytes);
  if (!picture) throw new Error("it was not read");
  return picture;
}
function drawn(width: number, height: number, colorAt: (x: number, y: number) => Rgb): Picture {
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rgb.set(colorAt(x, y), (y * width + x) * 3);
  return { width, height, rgb };
}
const wave = (x: number, y: number) =>
  [0, 1, 2].map((n) => Math.round(128 + 60 * Math.sin((x * (n + 2) + y) / 7) + 60 * Math.cos((y * (3 - n) - x) / 5)));
function farthestOf(picture: Picture, expected: Picture): number {
  expect([picture.width, picture.height]).toEqual([expected.width, expected.height]);
  return picture.rgb.reduce((most, value, at) => Math.max(most, Math.abs(value - (expected.rgb[at] as number))), 0);
}

describe("a WebP", () => {
  it.each([
    ["WebP by Chromium", 4],
    ["WebP by Chromium, without loss", 0],
    ["WebP by Chromium, half clear, with loss", 4],
    ["animated WebP", 6],
  ] as const)("is read: %s", async (name, farthest) => {
    const picture = await read(fileOf(name));
    expect([picture.width, picture.height]).toEqual([48, 32]);
    expectLikeness(picture, farthest);
  });

  it.each([
    ["WebP of one pixel", 4],
    ["WebP of one pixel, without loss", 0],
  ] as const)("is read where it is as small as can be: %s", async (name, farthest) => {
    expect(
      farthestOf(
        await read(fileOf(name)),
        drawn(1, 1, () => quarters[0]),
      ),
    ).toBeLessThanOrEqual(farthest);
  });

  it("is read where its sides are odd", async () => {
    const exact = quadrants(37, 51);
    expect(farthestOf(await read(fileOf("WebP of odd sides, without loss")), exact)).toBe(0);
    const picture = await read(fileOf("WebP of odd sides"));
    expect([picture.width, picture.height]).toEqual([37, 51]);
    expectLikeness(picture, 12);
  });

  it.each([
    ["WebP of waves", 37, 29, 60],
    ["WebP of eight partitions and four segments", 24, 80, 80],
    ["WebP of waves, without loss", 19, 13, 0],
  ] as const)("is read where nothing in it is even: %s", async (name, width, height, farthest) => {
    expect(farthestOf(await read(fileOf(name)), drawn(width, height, wave))).toBeLessThanOrEqual(farthest);
  });

  it.each([
    ["WebP of two colours", (x: number, y: number) => quarters[((x * x + y) % 7) % 2] as Rgb],
    ["WebP of nine colours", (x: number, y: number) => [((x * x + y * 5) % 9) * 28, 0, 77]],
  ] as const)("is read with its palette: %s", async (name, colorAt) => {
    expect(farthestOf(await read(fileOf(name)), drawn(37, 21, colorAt))).toBe(0);
  });

  it("that is half clear lies on white", async () => {
    const white = quarters.map((color) => color.map((value) => 255 - (255 - value) / 2));
    expectLikeness(await read(fileOf("WebP by Chromium, half clear")), 4, white as unknown as typeof quarters);
  });
});

describe("a hostile WebP", () => {
  const names = Object.keys(givenWebp) as Name[];
  const sized = (name: Name, at: number, ...size: number[]) => {
    const changed = fileOf(name);
    changed.set(size, at);
    return changed;
  };
  const [lossy, lossless] = ["WebP of one pixel", "WebP of one pixel, without loss"] as const;
  /** Where the size stands, behind the names of the file and of its one chunk. */
  const [lossySize, losslessSize] = [26, 21];
  const riff = (chunk: string, ...body: number[]) =>
    Uint8Array.from([...new TextEncoder().encode(`RIFF\0\0\0\0WEBP${chunk}`), ...body]);

  it.each([
    ["it is too large with loss", sized(lossy, lossySize, 1, 8, 0, 8)],
    ["it is the largest there is with loss", sized(lossy, lossySize, 0xff, 0x3f, 0xff, 0x3f)],
    ["it has no width", sized(lossy, lossySize, 0, 0)],
    ["it has no height", sized(lossy, lossySize + 2, 0, 0)],
    ["it is no key frame", sized(lossy, lossySize - 6, 1)],
    ["it is too large without loss", sized(lossless, losslessSize, 0, 0xc8, 0xff, 0x01)],
    ["it is the largest there is without loss", sized(lossless, losslessSize, 0xff, 0xff, 0xff, 0x0f)],
    ["it says another version", sized(lossless, losslessSize + 3, 0x20)],
    ["it is another kind of RIFF", sized(lossy, 8, 0x41)],
    ["it ends behind its name", riff("")],
    ["its chunk is empty", riff("VP8 ", 0, 0, 0, 0)],
    ["its chunk is empty, without loss", riff("VP8L", 0, 0, 0, 0)],
    ["its chunk is longer than any file", riff("ICCP", 0xff, 0xff, 0xff, 0xff)],
    [
      "it is nothing but frames",
      riff("", ...Array.from({ length: 4000 }, () => [0x41, 0x4e, 0x4d, 0x46, 0, 0, 0, 0]).flat()),
    ],
  ])("is none where %s", async (_, bytes) => {
    expect(await readPicture(bytes)).toBeUndefined();
  });

  it("is read with its bytes up to 3 MB, where it is lossy", async () => {
    const long = (more: number) => {
      const file = fileOf(lossy);
      const bytes = Uint8Array.from({ ...file, length: 20 + 3 * 1024 * 1024 + more });
      new DataView(bytes.buffer).setUint32(16, bytes.length - 20, true);
      return bytes;
    };
    expect(await readPicture(long(0))).toBeDefined();
    expect(await readPicture(long(1))).toBeUndefined();
  });

  it("is read with a thousand sets of codes at most", async () => {
    expect(await readPicture(withSets(1000))).toBeDefined();
    expect(await readPicture(withSets(1001))).toBeUndefined();
  });

  it("of four million pixels, each of no bits, is made smaller", async () => {
    const { width, height, rgb } = await read(sized(lossless, losslessSize, 0xff, 0xc7, 0xff, 0x01));
    expect([width, height]).toEqual([1024, 1024]);
    expect(rgb.subarray(0, 3)).toEqual(Uint8Array.from(quarters[0]));
    expect(rgb.subarray(-3)).toEqual(Uint8Array.from(quarters[0]));
  });

  it("of four million pixels, of which one comes, ends with the row it is in", async () => {
    const { width, height } = await read(sized(lossy, lossySize, 0, 8, 0, 8));
    expect([width, height]).toEqual([1024, 8]);
  });

  it.each(names)("is a picture or none, wherever it is cut off: %s", async (name) => {
    const file = fileOf(name);
    for (let end = 0; end < file.length; end++) expectBounded(await readPicture(file.subarray(0, end)));
  });

  it.each(names)("is a picture or none, whichever byte is another: %s", { timeout: 60_000 }, async (name) => {
    const file = fileOf(name);
    for (let at = 0; at < file.length; at++) {
      for (const mask of [0xff, 1 << (at % 8)]) {
        const changed = file.slice();
        changed[at] = (changed[at] as number) ^ mask;
        const begunAt = performance.now();
        expectBounded(await readPicture(changed));
        expect(performance.now() - begunAt, `byte ${at}`).toBeLessThan(4_000);
      }
    }
  });
});

function expectBounded(picture: Picture | undefined): void {
  if (!picture) return;
  const { width, height, rgb } = picture;
  expect(width * height).toBeGreaterThan(0);
  expect(width * height).toBeLessThanOrEqual(heldPixels);
  expect(rgb.length).toBe(width * height * 3);
}

/** Without loss: of 2048 by 2048 pixels, each of no bits. All are of the last set of codes. */
function withSets(count: number): Uint8Array {
  const bits: number[] = [];
  const put = (value: number, size: number) => {
    for (let n = 0; n < size; n++) bits.push((value >> n) & 1);
  };
  const symbolAlone = (symbol: number) => (symbol > 1 ? put(0b101 + (symbol << 3), 11) : put(1 + (symbol << 3), 4));
  put(0x2f, 8);
  put(2047, 14);
  put(2047, 14);
  // No alpha, the first version, no transform, no colours remembered; the sets are said for squares of 512 by 512.
  put(0, 1 + 3 + 1 + 1);
  put(1, 1);
  put(7, 3);
  put(0, 1);
  for (const symbol of [(count - 1) & 255, (count - 1) >> 8, 0, 0, 0]) symbolAlone(symbol);
  for (let n = 0; n < count * 5; n++) symbolAlone(0);
  const bytes = new Uint8Array(20 + Math.ceil(bits.length / 8));
  bytes.set(new TextEncoder().encode("RIFF\0\0\0\0WEBPVP8L"));
  new DataView(bytes.buffer).setUint32(16, bytes.length - 20, true);
  for (const [at, bit] of bits.entries()) bytes[20 + (at >> 3)] = (bytes[20 + (at >> 3)] as number) | (bit << (at & 7));
  return bytes;
}
