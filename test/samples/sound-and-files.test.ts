// Speech by its header, length and determinism; sounds without loss by what was said; films by what their containers say.
import { describe, expect, it } from "vitest";
import { concat } from "../../src/json/concat.ts";
import { encodeFlac } from "../../src/samples/media/flac.ts";
import { encodeOgg } from "../../src/samples/media/ogg.ts";
import { contentTypes, render } from "../../src/samples/media/render.ts";
import { sampleRate, speak, speechSeconds, syllablesOf } from "../../src/samples/media/voice.ts";
import { encodeWav } from "../../src/samples/media/wav.ts";
import { bundledWebp } from "../../src/samples/media/webp.ts";
import { loadZlib } from "../../src/samples/media/zlib.ts";
import { decodeFilm } from "./decode-film.ts";
import { decodeFlac, packetsOf } from "./decode-flac.ts";
import { expectLikeness, quadrants } from "./quadrants.ts";

const { crc32 } = loadZlib();

const text = "Hello there, how are you? I am a sample voice.";
const letters = (bytes: Uint8Array, from: number, to: number) => String.fromCharCode(...bytes.subarray(from, to));
const samplesOf = (wav: Uint8Array) => new Int16Array(wav.slice(44).buffer);
const sumOf = (samples: Int16Array) => crc32(new Uint8Array(samples.buffer));
const say = (said: string) => speak({ text: said });
const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

describe("speech", () => {
  it("rises at the end of a question, wherever it stands", () => {
    const voiced = syllablesOf("is it so? it is.").filter(({ vowel }) => vowel);
    expect(voiced.map(({ rises }) => rises)).toEqual([false, false, true, false, false]);
  });

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
    const wav = encodeWav(say(text));
    const view = viewOf(wav);
    expect([letters(wav, 0, 4), letters(wav, 8, 16), letters(wav, 36, 40)]).toEqual(["RIFF", "WAVEfmt ", "data"]);
    expect(view.getUint32(4, true)).toBe(wav.length - 8);
    expect([view.getUint16(20, true), view.getUint16(22, true), view.getUint16(34, true)]).toEqual([1, 1, 16]);
    expect([view.getUint32(24, true), view.getUint32(28, true)]).toEqual([sampleRate, sampleRate * 2]);
    expect(view.getUint32(40, true)).toBe(wav.length - 44);
    expect(samplesOf(wav).length).toBe(Math.round(speechSeconds(text) * sampleRate));
  });

  it.each([text, "", "你好世界", "...", "brrr 123", "é à ü"])("of %j is heard, and never clips", (said) => {
    const samples = say(said);
    const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    expect(loudest).toBeGreaterThan(20_000);
    expect(loudest).toBeLessThan(32_000);
  });

  it("pauses at a full stop", () => {
    const samples = say("mamamama. mamamama");
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
    const [first, again, ...others] = sums.map((request) => crc32(encodeWav(speak(request))));
    expect(again).toBe(first);
    expect(new Set([first, ...others]).size).toBe(5);
  });
});

describe("a sound without loss", () => {
  it.each([0, 46, 480])("is what was said, as FLAC and in Ogg: %d letters", (count) => {
    const samples = say(text.repeat(11).slice(0, count));
    const flac = encodeFlac(samples);
    expect(sumOf(decodeFlac(flac))).toBe(sumOf(samples));
    const [mapping, comments, ...frames] = packetsOf(encodeOgg(samples));
    expect(letters(mapping as Uint8Array, 1, 5)).toBe("FLAC");
    expect(comments?.[0]).toBe(0x84);
    const stream = concat([mapping?.subarray(9) ?? new Uint8Array(), ...frames]);
    expect(sumOf(decodeFlac(stream))).toBe(sumOf(samples));
    expect(flac.length).toBeLessThan(samples.length * 2);
  });

  it("holds whatever values there are", () => {
    const loudest = Int16Array.from({ length: 4099 }, (_, i) => (i % 3 === 0 ? -32_768 : i % 3 === 1 ? 32_767 : 0));
    for (const samples of [loudest, new Int16Array(5000), Int16Array.of(1, -1), Int16Array.of(7)]) {
      expect(sumOf(decodeFlac(encodeFlac(samples)))).toBe(sumOf(samples));
    }
  });
});

describe("a film", () => {
  const film = async (more: object) => {
    const request = { prompt: "a lake", seed: 1, width: 128, height: 96, seconds: 2, ...more } as const;
    return decodeFilm(render({ format: "mp4", ...request }).bytes);
  };

  it("begins with the picture that was given, and lasts as long as was asked", async () => {
    const { first, seconds, frames } = await film({ given: quadrants(400, 300), seconds: 3 });
    expect([first.width, first.height, seconds, frames]).toEqual([128, 96, 3, 36]);
    expectLikeness(first, 3);
  });

  it("shows a picture of another shape from its middle", async () => {
    expectLikeness((await film({ given: quadrants(40, 900) })).first, 3);
  });

  it("begins with what the prompt says where none was given", async () => {
    const [lake, again, city] = [await film({}), await film({}), await film({ prompt: "a city" })];
    expect(crc32(again.first.rgb)).toBe(crc32(lake.first.rgb));
    expect(crc32(city.first.rgb)).not.toBe(crc32(lake.first.rgb));
  });
});

it("the bundled WebP is small, and whole", () => {
  const webp = bundledWebp();
  expect(webp.length).toBeLessThan(3072);
  expect([letters(webp, 0, 4), letters(webp, 8, 12)]).toEqual(["RIFF", "WEBP"]);
  expect(viewOf(webp).getUint32(4, true)).toBe(webp.length - 8);
});

describe("render", () => {
  const picture = { prompt: "sea", seed: 1, width: 64, height: 64 };

  it.each([
    [{ format: "png", ...picture }, "\x89PNG"],
    [{ format: "jpeg", ...picture }, "\xff\xd8\xff\xe0"],
    [{ format: "jpeg", quality: 40, ...picture }, "\xff\xd8\xff\xe0"],
    [{ format: "webp" }, "RIFF"],
    [{ format: "wav", text }, "RIFF"],
    [{ format: "flac", text }, "fLaC"],
    [{ format: "ogg", text }, "OggS"],
    [{ format: "mp4", ...picture, seconds: 1 }, "\0\0\0"],
  ] as const)("makes %o", async (request, magic) => {
    const { bytes, contentType } = render(request);
    expect(contentType).toBe(contentTypes[request.format]);
    expect(letters(bytes, 0, magic.length)).toBe(magic);
  });
});
