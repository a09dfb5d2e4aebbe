// Pictures that were given to samples: read as other programs write them, and whatever hostile bytes they are.
import * as fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { readPicture } from "../../src/samples/given/read-picture.ts";
import { heldPixels } from "../../src/samples/given/unreadable.ts";
import { encodeJpeg } from "../../src/samples/media/jpeg.ts";
import { encodePng } from "../../src/samples/media/png.ts";
import type { Picture } from "../../src/samples/painter/picture.ts";
import { givenFiles } from "./given-files.ts";
import { expectLikeness, quadrants, quarters } from "./quadrants.ts";

const fileOf = (name: keyof typeof givenFiles) => Uint8Array.fromBase64(givenFiles[name]);
async function read(bytes: Uint8Array): Promise<Picture> {
  const picture = await readPicture(bytes);
  if (!picture) throw new Error("it was not read");
  return picture;
}
const bytesOf = (...parts: (string | readonly number[] | Uint8Array)[]) =>
  Uint8Array.from(
    parts.flatMap((part) => (typeof part === "string" ? [...new TextEncoder().encode(part)] : [...part])),
  );

describe("a picture", () => {
  it.each([
    ["progressive JPEG", 48],
    ["progressive JPEG, optimised scans", 48],
    ["GIF", 48],
    ["interlaced GIF", 6],
    ["interlaced PNG", 6],
    ["PNG with a palette", 48],
    ["PNG of 16 bits", 48],
    ["WebP", 48],
  ] as const)("is read: %s", async (name, width) => {
    const picture = await read(fileOf(name));
    expect([picture.width, picture.height]).toEqual([width, (width * 2) / 3]);
    expectLikeness(picture, 4);
  });

  it("of four inks is read in their colours, near enough", async () => {
    expectLikeness(await read(fileOf("JPEG of four inks")), 80);
  });

  it("that is half clear lies on white", async () => {
    const white = quarters.map((color) => color.map((value) => 255 - (255 - value) / 2));
    expectLikeness(await read(fileOf("PNG half clear")), 4, white as unknown as typeof quarters);
  });

  it("without colours is read in greys", async () => {
    const { rgb } = await read(fileOf("grey PNG"));
    for (let at = 0; at < rgb.length; at += 3) expect(rgb[at]).toBe(rgb[at + 2]);
    expect(new Set(rgb).size).toBe(4);
  });

  it("is not read as AVIF", async () => {
    expect(await readPicture(fileOf("AVIF"))).toBeUndefined();
  });

  it.each([
    [1000, 700, 1000, 700],
    [1024, 1024, 1024, 1024],
    [1600, 1200, 800, 600],
    [2047, 1533, 1024, 767],
    [4000, 3000, 1000, 750],
    [16, 2000, 16, 2000],
  ])("of %d by %d pixels is held as %d by %d", async (width, height, ...held) => {
    const picture = await read(encodeJpeg(quadrants(width, height), 88));
    expect([picture.width, picture.height]).toEqual(held);
    expect(picture.width * picture.height).toBeLessThanOrEqual(heldPixels);
    expectLikeness(picture, 4);
  });

  it("of more than a megapixel is made smaller as a PNG, too", async () => {
    const picture = await read(encodePng(quadrants(1600, 1200)));
    expect([picture.width, picture.height]).toEqual([800, 600]);
    expectLikeness(picture, 0);
  });

  it("is turned as its camera was held", async () => {
    const plain = encodeJpeg(quadrants(96, 64), 90);
    const exif = (orientation: number) =>
      bytesOf(
        [0xff, 0xe1, 0, 34],
        "Exif\0\0MM\0*",
        [0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0],
        [0, 0, 0, 0],
      );
    const held = (orientation: number) => read(bytesOf(plain.subarray(0, 2), exif(orientation), plain.subarray(2)));
    /** Which quarter of the stored picture is shown where. */
    const shown: Record<number, number[]> = {
      1: [0, 1, 2, 3],
      2: [1, 0, 3, 2],
      3: [3, 2, 1, 0],
      4: [2, 3, 0, 1],
      5: [0, 2, 1, 3],
      6: [2, 0, 3, 1],
      7: [3, 1, 2, 0],
      8: [1, 3, 0, 2],
    };
    for (const [orientation, order] of Object.entries(shown)) {
      const picture = await held(Number(orientation));
      expect(picture.width > picture.height).toBe(Number(orientation) < 5);
      expectLikeness(picture, 10, order.map((n) => quarters[n]) as unknown as typeof quarters);
    }
  });

  it("is read through its restarts", async () => {
    // Eight grey blocks, a restart after each: a mean of seven bits, and nothing else.
    const means = [120, 100, 80, 64, 120, 100, 80, 64];
    const frame = [0xff, 0xc0, 0, 11, 8, 0, 8, 0, 64, 1, 1, 0x11, 0];
    const steps = [0xff, 0xdb, 0, 67, 0, ...new Array<number>(64).fill(8)];
    const codes = [0x00, 0x10].flatMap((table) => [
      ...[0xff, 0xc4, 0, 20, table, 1],
      ...new Array<number>(15).fill(0),
      table === 0 ? 7 : 0,
    ]);
    const scan = [0xff, 0xdd, 0, 4, 0, 1, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0];
    // "0" says that a mean of seven bits follows, another "0" that nothing more does; ones fill the byte.
    const data = means.flatMap((mean, n) => [mean, 0x7f, ...(n < 7 ? [0xff, 0xd0 + n] : [])]);
    const file = bytesOf([0xff, 0xd8], frame, steps, codes, scan, data, [0xff, 0xd9]);
    const { width, height, rgb } = await read(file);
    expect([width, height]).toEqual([64, 8]);
    expect(means.map((_, n) => rgb[n * 24])).toEqual(means.map((mean) => 128 + mean));
  });
});

describe("hostile bytes", () => {
  const jpeg = encodeJpeg(quadrants(48, 32), 90);
  const sized = (file: Uint8Array, at: number, ...size: number[]) => {
    const changed = file.slice();
    changed.set(size, at);
    return changed;
  };
  const frameAt = jpeg.findIndex((byte, at) => byte === 0xff && jpeg[at + 1] === 0xc0) + 5;
  const scanAt = jpeg.findIndex((byte, at) => byte === 0xff && jpeg[at + 1] === 0xda);
  const png = Uint8Array.fromBase64(givenFiles["PNG with a palette"]);
  const progressive = Uint8Array.fromBase64(givenFiles["progressive JPEG"]);
  const progressiveFrame = progressive.findIndex((byte, at) => byte === 0xff && progressive[at + 1] === 0xc2) + 5;
  const gif = Uint8Array.fromBase64(givenFiles.GIF);
  const emptyScan = [0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0];

  const rows: [name: string, bytes: Uint8Array][] = [
    ["nothing", new Uint8Array()],
    ["a JPEG's first bytes alone", jpeg.slice(0, 4)],
    ["a JPEG without a size", sized(jpeg, frameAt, 0, 0, 0, 0)],
    ["a JPEG of no height", sized(jpeg, frameAt, 0, 0)],
    ["a JPEG of 4 gigapixels", sized(jpeg, frameAt, 0xff, 0xff, 0xff, 0xff)],
    ["a JPEG of 60 megapixels, of which nothing comes", sized(jpeg, frameAt, 0x1e, 0, 0x1e, 0)],
    ["a progressive JPEG of 60 megapixels", sized(progressive, progressiveFrame, 0x1e, 0, 0x1e, 0)],
    ["a progressive JPEG of 2 megapixels, of which nothing comes", sized(progressive, progressiveFrame, 5, 0, 5, 0)],
    ["a JPEG of 12 bits", sized(jpeg, frameAt - 1, 12)],
    ["a JPEG of 200 components", sized(jpeg, frameAt + 4, 200)],
    ["a JPEG sampled 15 times", sized(jpeg, frameAt + 6, 0xff)],
    ["a JPEG sampled never", sized(jpeg, frameAt + 6, 0)],
    ["a JPEG cut off in its scan", jpeg.slice(0, scanAt + 60)],
    ["a JPEG cut off before its scan", jpeg.slice(0, scanAt)],
    ["a JPEG's scan without codes", bytesOf(jpeg.subarray(0, frameAt + 12), jpeg.subarray(scanAt))],
    ["a JPEG with two frames", bytesOf(jpeg.subarray(0, scanAt), jpeg.subarray(frameAt - 5, frameAt + 12), jpeg)],
    ["a JPEG of arithmetic codes", sized(jpeg, frameAt - 4, 0xc9)],
    [
      "a JPEG with segments of no length",
      bytesOf([0xff, 0xd8], ...Array.from({ length: 5000 }, () => [0xff, 0xe0, 0, 0])),
    ],
    ["a JPEG of ten thousand scans", bytesOf(progressive, ...Array.from({ length: 10_000 }, () => emptyScan))],
    [
      "a JPEG whose Exif leads beyond it",
      bytesOf([0xff, 0xd8, 0xff, 0xe1, 0, 16], "Exif\0\0MM\0*", [0x7f, 0xff, 0xff, 0xff], jpeg),
    ],
    ["a JPEG with more codes than there can be", sized(jpeg, jpeg.indexOf(0xc4) + 4, 9, 9, 9)],
    ["a PNG without a header", png.slice(0, 8)],
    ["a PNG without a size", sized(png, 16, 0, 0, 0, 0, 0, 0, 0, 0)],
    ["a PNG of no height", sized(png, 20, 0, 0, 0, 0)],
    ["a PNG of 2^31 columns", sized(png, 16, 0x7f, 0xff, 0xff, 0xff)],
    ["a PNG of 32,768 by 32,768", sized(png, 16, 0, 0, 0x80, 0, 0, 0, 0x80, 0)],
    ["a PNG of seven bits", sized(png, 24, 7)],
    ["a PNG of the fifth kind", sized(png, 25, 5)],
    ["a PNG whose palette is missing", sized(png, 37, 0x58)],
    ["a PNG whose chunk is longer than it", sized(png, 33, 0x7f, 0xff, 0xff, 0xff)],
    ["a PNG cut off in its data", png.slice(0, png.length - 40)],
    ["a PNG whose data is none", sized(png, png.length - 40, 1, 2, 3, 4, 5, 6, 7)],
    ["a GIF without a picture", gif.slice(0, 13)],
    ["a GIF of 4 gigapixels", sized(gif, gif.indexOf(0x2c, 13) + 5, 0xff, 0xff, 0xff, 0xff)],
    ["a GIF whose codes have 12 bits at once", sized(gif, gif.indexOf(0x2c, 13) + 10, 12)],
    [
      "a GIF of nothing but extensions",
      bytesOf(gif.subarray(0, 13), ...Array.from({ length: 5000 }, () => [0x21, 0xff, 0])),
    ],
  ];

  it.each(rows)("end as a picture or as none: %s", async (_, bytes) => {
    expectBounded(await readPicture(bytes));
  });

  it("that unpack to a gigabyte are unpacked no further than they are looked at", async () => {
    // 2 MB of zeros packed, five hundred times over: a PNG that claims to be as large.
    const once = await pack(new Uint8Array(2 * 1024 * 1024));
    const header = sized(png.slice(0, 33), 16, 0, 0, 0x7d, 0, 0, 0, 0x7d, 0, 8, 6);
    const chunk = bytesOf([0, 0, once.length >> 8, once.length & 255], "IDAT", once, [0, 0, 0, 0]);
    expectBounded(await readPicture(bytesOf(header, ...Array.from({ length: 500 }, () => chunk))));
  });

  it("of very many tiny parts are not looked at in a time that grows with their square", async () => {
    const filled = (head: Uint8Array, part: readonly number[]) => {
      const bytes = new Uint8Array(10 * 1024 * 1024);
      bytes.set(head);
      for (let at = head.length; at + part.length <= bytes.length; at += part.length) bytes.set(part, at);
      return bytes;
    };
    const begunAt = performance.now();
    expect(await readPicture(filled(gif.subarray(0, 13), [0x21, 0xff, 0]))).toBeUndefined();
    const emptyData = [0, 0, 0, 0, 0x49, 0x44, 0x41, 0x54, 0, 0, 0, 0];
    expect(await readPicture(filled(png.subarray(0, 33), emptyData))).toBeUndefined();
    expect(performance.now() - begunAt).toBeLessThan(4_000);
  });

  it("never lead to a fault, however a file is changed", { timeout: 120_000 }, async () => {
    const files = [jpeg, progressive, png, gif, ...Object.keys(givenFiles).map((name) => fileOf(name as "GIF"))];
    const change = fc.record({ at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), to: fc.nat(255) });
    const changed = fc.record({
      file: fc.constantFrom(...files),
      changes: fc.array(change, { minLength: 1, maxLength: 8 }),
      end: fc.double({ min: 0.1, max: 1, noNaN: true }),
    });
    const property = fc.asyncProperty(changed, async ({ file, changes, end }) => {
      const bytes = file.slice(0, Math.ceil(file.length * end));
      for (const { at, to } of changes) bytes[Math.floor(at * bytes.length)] = to;
      expectBounded(await readPicture(bytes));
    });
    await fc.assert(property, { numRuns: inject("isFull") ? 20_000 : 600 });
  });
});

function expectBounded(picture: Picture | undefined): void {
  if (!picture) return;
  const { width, height, rgb } = picture;
  expect(width * height).toBeGreaterThan(0);
  expect(width * height).toBeLessThanOrEqual(heldPixels);
  expect(rgb.length).toBe(width * height * 3);
}

async function pack(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const packed = new Response(bytes).body?.pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}
