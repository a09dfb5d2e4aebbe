// Speech by its header, length and determinism; the bundled files by what their containers say.
import { describe, expect, it } from "vitest";
import { bundledFile, bundledFormats } from "../../../../../src/platform/workers/sample-models/media/files.ts";
import { crc32 } from "../../../../../src/platform/workers/sample-models/media/png.ts";
import { contentTypes, render } from "../../../../../src/platform/workers/sample-models/media/render.ts";
import { sampleRate, speak, speechSeconds } from "../../../../../src/platform/workers/sample-models/media/wav.ts";

const text = "Hello there, how are you? I am a sample voice.";
const letters = (bytes: Uint8Array, from: number, to: number) => String.fromCharCode(...bytes.subarray(from, to));
const samplesOf = (wav: Uint8Array) => new Int16Array(wav.slice(44).buffer);
const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

describe("speech", () => {
  it.each([
    ["", 1, 0.5],
    ["hi", 1, 0.5],
    ["a".repeat(14), 1, 1],
    ["a".repeat(140), 1, 10],
    ["a".repeat(140), 2, 5],
    ["a".repeat(140), 0.5, 20],
    [`  ${"a".repeat(28)}\n`, 1, 2],
    ["😀".repeat(28), 1, 2],
    ["a".repeat(100_000), 1, 120],
    ["a".repeat(140), 0, 40],
    ["a".repeat(140), 1000, 2.5],
    ["a".repeat(140), Number.NaN, 10],
  ])("of %j at speed %d lasts %d s", (said, speed, seconds) => {
    expect(speechSeconds(said, speed)).toBe(seconds);
  });

  it("is a WAV of one channel and 16 bits, as long as it says", () => {
    const wav = speak({ text });
    const view = viewOf(wav);
    expect([letters(wav, 0, 4), letters(wav, 8, 16), letters(wav, 36, 40)]).toEqual(["RIFF", "WAVEfmt ", "data"]);
    expect(view.getUint32(4, true)).toBe(wav.length - 8);
    expect([view.getUint16(20, true), view.getUint16(22, true), view.getUint16(34, true)]).toEqual([1, 1, 16]);
    expect([view.getUint32(24, true), view.getUint32(28, true)]).toEqual([sampleRate, sampleRate * 2]);
    expect(view.getUint32(40, true)).toBe(wav.length - 44);
    expect(samplesOf(wav).length).toBe(Math.round(speechSeconds(text) * sampleRate));
  });

  it.each([text, "", "你好世界", "...", "brrr 123", "é à ü"])("of %j is heard, and never clips", (said) => {
    const samples = samplesOf(speak({ text: said }));
    const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    expect(loudest).toBeGreaterThan(20_000);
    expect(loudest).toBeLessThan(32_000);
  });

  it("pauses at a full stop", () => {
    const samples = samplesOf(speak({ text: "mamamama. mamamama" }));
    const middle = Math.round(samples.length / 2);
    const quiet = samples.subarray(middle - 400, middle + 400).filter((sample) => Math.abs(sample) < 50).length;
    expect(quiet).toBeGreaterThan(600);
  });

  it("says the same again, and something else for another text, voice or speed", () => {
    const sums = [
      { text },
      { text },
      { text: `${text}!` },
      { text, voice: "alloy" },
      { text, voice: "nova" },
      { text, speed: 1.5 },
    ];
    const [first, again, ...others] = sums.map((request) => crc32(speak(request)));
    expect(again).toBe(first);
    expect(new Set([first, ...others]).size).toBe(5);
  });
});

describe("the bundled files", () => {
  it.each(bundledFormats)("%s is small", (format) => {
    expect(bundledFile(format).length).toBeLessThan(3072);
  });

  it("are what they say, and whole", () => {
    const webp = bundledFile("webp");
    expect([letters(webp, 0, 4), letters(webp, 8, 12)]).toEqual(["RIFF", "WEBP"]);
    expect(viewOf(webp).getUint32(4, true)).toBe(webp.length - 8);
    expect(letters(bundledFile("flac"), 0, 4)).toBe("fLaC");
    expect(pagesOf(bundledFile("ogg"))).toBeGreaterThan(2);
    expect(boxesOf(bundledFile("mp4"))).toEqual(expect.arrayContaining(["ftyp", "moov", "mdat"]));
  });
});

/** Ogg pages follow one another to the very end; each says how long its segments are. */
function pagesOf(ogg: Uint8Array): number {
  let pages = 0;
  for (let at = 0; at < ogg.length; pages++) {
    expect(letters(ogg, at, at + 4)).toBe("OggS");
    const segments = ogg.subarray(at + 27, at + 27 + (ogg[at + 26] ?? 0));
    at += 27 + segments.length + segments.reduce((sum, length) => sum + length, 0);
    expect(at).toBeLessThanOrEqual(ogg.length);
  }
  return pages;
}

function boxesOf(mp4: Uint8Array): string[] {
  const boxes: string[] = [];
  for (let at = 0; at < mp4.length; ) {
    boxes.push(letters(mp4, at + 4, at + 8));
    at += viewOf(mp4).getUint32(at);
    expect(at).toBeLessThanOrEqual(mp4.length);
  }
  return boxes;
}

describe("render", () => {
  const picture = { prompt: "sea", seed: 1, width: 64, height: 64 };

  it.each([
    [{ format: "png", ...picture }, "\x89PNG"],
    [{ format: "jpeg", ...picture }, "\xff\xd8\xff\xe0"],
    [{ format: "jpeg", quality: 40, ...picture }, "\xff\xd8\xff\xe0"],
    [{ format: "webp" }, "RIFF"],
    [{ format: "wav", text }, "RIFF"],
    [{ format: "flac" }, "fLaC"],
    [{ format: "ogg" }, "OggS"],
    [{ format: "mp4" }, "\0\0\0"],
  ] as const)("makes %o", async (request, magic) => {
    const { bytes, contentType } = await render(request);
    expect(contentType).toBe(contentTypes[request.format]);
    expect(letters(bytes, 0, magic.length)).toBe(magic);
  });
});
