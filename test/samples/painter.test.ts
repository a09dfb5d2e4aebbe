// The painter: what it depends on, its bounds, and that PNG and JPEG give back what was painted.
import { describe, expect, it } from "vitest";
import { chanceFrom } from "../../src/samples/chance.ts";
import { encodeJpeg } from "../../src/samples/media/jpeg.ts";
import { encodePng } from "../../src/samples/media/png.ts";
import { loadZlib } from "../../src/samples/media/zlib.ts";
import { type Picture, paint } from "../../src/samples/painter/picture.ts";
import { motifs } from "../../src/samples/painter/scene.ts";
import { decodeJpeg, likeness } from "./decode-jpeg.ts";
import { decodePng } from "./decode-png.ts";

const { crc32 } = loadZlib();

const request = { prompt: "a lighthouse at dusk", seed: 7, width: 160, height: 96 };
const sum = (picture: Picture) => crc32(picture.rgb);

function meanColor({ rgb }: Picture): [number, number, number] {
  const total: [number, number, number] = [0, 0, 0];
  for (let i = 0; i < rgb.length; i += 3) {
    for (const n of [0, 1, 2] as const) total[n] += rgb[i + n] ?? 0;
  }
  return total.map((value) => (value * 3) / rgb.length) as [number, number, number];
}

describe("paint", () => {
  it("gives the same bytes for the same prompt, seed and size", () => {
    expect(sum(paint(request))).toBe(sum(paint({ ...request })));
    expect(sum(paint({ ...request, prompt: " A Lighthouse at dusk " }))).toBe(sum(paint(request)));
  });

  it.each([
    ["seed", { seed: 8 }],
    ["negative seed", { seed: -1 }],
    ["prompt", { prompt: "a lighthouse at dawn" }],
    ["unknown words", { prompt: "qwertz uiop" }],
    ["no words", { prompt: "" }],
    ["width", { width: 161 }],
    ["height", { height: 97 }],
  ])("gives another picture for another %s", (_what, change) => {
    expect(sum(paint({ ...request, ...change }))).not.toBe(sum(paint(request)));
  });

  it.each(motifs.filter((motif) => motif !== "silk"))("paints a %s that is neither empty nor flat", (motif) => {
    const { rgb } = paint({ ...request, prompt: motif });
    expect(new Set(rgb).size).toBeGreaterThan(60);
  });

  it("lets the words choose the light", () => {
    const [night, day] = ["hills at night", "hills on a sunny day"].map((prompt) =>
      meanColor(paint({ ...request, prompt })),
    );
    expect((day?.[0] ?? 0) - (night?.[0] ?? 0)).toBeGreaterThan(60);
    const [red, green] = ["red hills", "green hills"].map((prompt) => meanColor(paint({ ...request, prompt })));
    expect(red?.[0]).toBeGreaterThan(red?.[1] ?? 255);
    expect(green?.[1]).toBeGreaterThan(green?.[0] ?? 255);
  });

  it.each([
    [0, 0, 64, 64],
    [63, 100, 64, 100],
    [64, 64, 64, 64],
    [2048, 64, 2048, 64],
    [64, 2049, 64, 2048],
    [1e9, 70.4, 2048, 70],
    [Number.NaN, Number.POSITIVE_INFINITY, 64, 64],
    [-5, 65.5, 64, 66],
  ])("brings %d by %d into bounds", (width, height, expectedWidth, expectedHeight) => {
    const picture = paint({ ...request, width, height });
    expect([picture.width, picture.height]).toEqual([expectedWidth, expectedHeight]);
    expect(picture.rgb.length).toBe(expectedWidth * expectedHeight * 3);
  });

  it("scales a large picture up without a seam", () => {
    const { rgb, width, height } = paint({ ...request, prompt: "day", width: 1500, height: 1200 });
    expect([width, height, rgb.length]).toEqual([1500, 1200, 1500 * 1200 * 3]);
    expect(rgb.subarray(-30).some((value) => value > 0)).toBe(true);
  });
});

describe("PNG", () => {
  it.each([
    [64, 64],
    [97, 65],
    [200, 80],
  ])("gives back the very pixels of %d by %d", async (width, height) => {
    const picture = paint({ ...request, width, height });
    expect(await decodePng(encodePng(picture))).toEqual(picture);
  });
});

describe("JPEG", () => {
  it.each([
    ["a lighthouse at dusk", 88, 34],
    ["a flower meadow", 88, 30],
    ["city at night", 92, 30],
    ["space", 60, 30],
  ])("of %s at quality %d is closer than %d dB", (prompt, quality, least) => {
    const picture = paint({ prompt, seed: 3, width: 250, height: 133 });
    const decoded = decodeJpeg(encodeJpeg(picture, quality));
    expect([decoded.width, decoded.height]).toEqual([250, 133]);
    expect(likeness(decoded.rgb, picture.rgb)).toBeGreaterThan(least);
  });

  it("is told apart by its quality, and takes any", () => {
    const picture = paint(request);
    const [low, middle, high] = [1, 60, 100].map((quality) => encodeJpeg(picture, quality).length);
    expect(low).toBeLessThan(middle ?? 0);
    expect(middle).toBeLessThan(high ?? 0);
    expect(encodeJpeg(picture, 500).length).toBe(high);
    expect(encodeJpeg(picture, 0).length).toBe(low);
  });

  it("keeps what it is worst at: noise", () => {
    const chance = chanceFrom(1);
    const rgb = new Uint8Array(64 * 64 * 3).map(() => chance() * 256);
    for (let i = 0; i < rgb.length; i += 3) rgb.fill(rgb[i] ?? 0, i, i + 3);
    const decoded = decodeJpeg(encodeJpeg({ width: 64, height: 64, rgb }, 100));
    expect(likeness(decoded.rgb, rgb)).toBeGreaterThan(45);
  });
});
