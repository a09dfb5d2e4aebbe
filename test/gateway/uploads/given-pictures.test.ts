// What samples make of what came in, through the front door: uploaded, edited, animated; and said.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { encodeJpeg } from "../../../src/samples/media/jpeg.ts";
import { encodePng } from "../../../src/samples/media/png.ts";
import { decodeFilm } from "../../samples/decode-film.ts";
import { decodePng } from "../../samples/decode-png.ts";
import { givenWebp } from "../../samples/given-webp-files.ts";
import { expectLikeness, quadrants, quartersOf } from "../../samples/quadrants.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { fileOf, origin, Uploader } from "./uploader.ts";

const photo = encodeJpeg(quadrants(640, 480), 90) as Uint8Array<ArrayBuffer>;
/** So much of a mood lies on an edited picture, and its corners are darker. */
const tinted = 100;

let user: Uploader;
let token: string;
beforeEach(async () => {
  user = new Uploader();
  token = await user.token("ada");
});
afterEach(emptyStorage);

async function run(model: string, input: object): Promise<Record<string, string>> {
  const job = await user.ask("POST", `/v2/${model}/runsync`, { token, json: { input } });
  const { status, output } = await job.json<{ status: string; output: Record<string, string> }>();
  expect(status).toBe("COMPLETED");
  return output;
}
const bytesAt = async (url = "") => new Uint8Array(await (await user.ask("GET", url)).arrayBuffer());
async function edit(more: object): Promise<Awaited<ReturnType<typeof decodePng>>> {
  const input = { prompt: "the same, at dusk", seed: 1, output_format: "png", size: "320*240", ...more };
  return decodePng(await bytesAt((await run("qwen-image-edit", input))["image_url"]));
}

describe("a photo that was uploaded", () => {
  it("is shown by its edit, and the edit is what its film begins with", async () => {
    const { url } = await user.uploaded(token, photo);
    const input = { prompt: "the same in winter", image: url, seed: 1, size: "320*240", output_format: "png" };
    const { image_url = "" } = await run("qwen-image-edit", input);
    expect(new URL(image_url).pathname).toMatch(/^\/images\//);
    const edited = await decodePng(await bytesAt(image_url));
    expect([edited.width, edited.height]).toEqual([320, 240]);
    expectLikeness(edited, tinted);

    const { video_url } = await run("wan-2-6-i2v", { prompt: "it moves", image: image_url });
    const { first, seconds } = decodeFilm(await bytesAt(video_url));
    expect(seconds).toBe(5);
    expectLikeness(first, tinted);
    for (const [n, quarter] of quartersOf(first).entries()) {
      const same = quartersOf(edited)[n] as readonly number[];
      for (const i of [0, 1, 2] as const) expect(Math.abs(quarter[i] - (same[i] ?? 0))).toBeLessThan(20);
    }
  });

  it("takes its light from the prompt", async () => {
    const { url: image } = await user.uploaded(token, photo);
    const [dusk, night] = [await edit({ image }), await edit({ image, prompt: "the same at midnight" })];
    const light = (picture: typeof dusk) => picture.rgb.reduce((sum, value) => sum + value, 0) / picture.rgb.length;
    expect(light(night)).toBeLessThan(light(dusk) - 5);
    expectLikeness(night, tinted);
  });

  it.each(["WebP by Chromium", "WebP by Chromium, without loss"] as const)(
    "is shown by its edit as a browser's canvas wrote it: %s",
    async (name) => {
      const { url: image } = await user.uploaded(token, Uint8Array.fromBase64(givenWebp[name]), { type: "image/webp" });
      expectLikeness(await edit({ image }), tinted);
    },
  );

  it("is shown as a PNG where WebP is asked for", async () => {
    const { url: image } = await user.uploaded(token, photo);
    const input = { prompt: "x", image, images: [image], output_format: "webp" };
    expectLikeness(await decodePng(await bytesAt((await run("qwen-image-edit-2511", input))["image_url"])), tinted);
  });

  it("is shown in its own shape where none is asked for", async () => {
    const { url } = await user.uploaded(token, photo);
    const { image_url } = await run("nano-banana-edit", { prompt: "x", images: [url], output_format: "png" });
    const { width, height } = await decodePng(await bytesAt(image_url));
    expect([width, height]).toEqual([1024, 768]);
  });
});

describe("a picture in the input itself", () => {
  it.each([
    ["a data URL", (base64: string) => `data:image/jpeg;base64,${base64}`],
    ["base64", (base64: string) => base64],
  ])("is shown, as %s", async (_, write) => {
    expectLikeness(await edit({ image: write(photo.toBase64()) }), tinted);
  });

  it("is the first one that can be read", async () => {
    const image = encodePng(quadrants(64, 64)).toBase64();
    const output = await run("seedance-v1-5-pro-i2v", {
      prompt: "x",
      image: "AAAA",
      last_image: image,
    });
    expectLikeness(decodeFilm(await bytesAt(output["video_url"])).first, 10);
  });
});

describe("a picture elsewhere", () => {
  let asked: string[];
  let answer: (request: Request) => Response | Promise<Response>;
  const there = "https://cdn.example.net/a.png";
  beforeEach(() => {
    asked = [];
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      asked.push(request.url);
      return answer(request);
    });
  });
  afterEach(() => vi.restoreAllMocks());
  const isShown = async (image: string): Promise<boolean> => {
    const picture = await edit({ image });
    try {
      expectLikeness(picture, tinted);
      return true;
    } catch {
      return false;
    }
  };

  it("is asked for without anything of the caller's, and shown", async () => {
    let sent: Request | undefined;
    answer = (request) => {
      sent = request;
      return new Response(photo);
    };
    expect(await isShown(there)).toBe(true);
    expect(asked).toEqual([there]);
    expect([...(sent?.headers.keys() ?? [])]).toEqual([]);
    expect([sent?.method, sent?.redirect]).toEqual(["GET", "manual"]);
  });

  const missing: [name: string, answer: (request: Request) => Response | Promise<Response>][] = [
    ["its host is away", () => Promise.reject(new Error("Network connection lost."))],
    ["there is none", () => new Response("no", { status: 404 })],
    ["it leads elsewhere", () => new Response(null, { status: 302, headers: { Location: "http://10.0.0.1/a.png" } })],
    ["it says that it is too large", () => new Response(photo, { headers: { "Content-Length": "99999999" } })],
    ["it is too large", () => new Response(new Uint8Array(11 * 1024 * 1024))],
    ["it breaks off", () => new Response(new ReadableStream({ pull: (to) => to.error(new Error("broken")) }))],
    ["it is a page", () => new Response("<html>")],
    ["it is a film", () => new Response(fileOf([0, 0, 0, 24, 0x66, 0x74, 0x79, 0x70], 1000))],
    [
      "it never comes",
      ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    ],
  ];
  it.each(missing)("is left out where %s", async (_, given) => {
    answer = given;
    expect(await isShown(there)).toBe(false);
    expect(asked).toEqual([there]);
  });

  it("is not asked for where it would lead to the gateway itself, or to a private network", async () => {
    answer = () => new Response(photo);
    const direct = async (image: string) => {
      const { PLATFORM_API_KEY } = user.env;
      const json = { input: { prompt: "x", image, size: "320*240", output_format: "png" } };
      const job = await user.ask("POST", "/platform/v2/qwen-image-edit/runsync", { token: PLATFORM_API_KEY, json });
      expect(await job.json()).toMatchObject({ status: "COMPLETED" });
    };
    for (const image of [
      `${origin}/admin/users/ada`,
      `${origin}/uploads/../admin/users/ada`,
      `${origin}/healthz`,
      "http://cdn.example.net/a.png",
      "https://10.0.0.1/a.png",
      "https://me:secret@cdn.example.net/a.png",
      "https://cdn.example.net:8443/a.png",
    ])
      await direct(image);
    expect(asked).toEqual([]);
  });
});

describe("a speech", () => {
  const secondsOf = async (letters: number, more: object = {}) => {
    const prompt = "This is what is said here. ".repeat(20).slice(0, letters).replace(/ $/, ".");
    const { audio_url } = await run("chatterbox-turbo", { prompt, ...more });
    const sound = await bytesAt(audio_url);
    return (sound.length - 44) / 2 / 16_000;
  };

  it("of 200 letters lasts as long as they take to say, and ten times as long as one of 20", async () => {
    const [short, long] = [await secondsOf(20), await secondsOf(200)];
    expect(long).toBeGreaterThan(200 / 18);
    expect(long).toBeLessThan(200 / 11);
    expect(long / short).toBeCloseTo(10, 1);
  });
});
