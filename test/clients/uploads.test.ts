// Uploads as docs/uploads.md shows them: by the pages' own programs in a real browser, from a page of another origin, and by curl.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { blocksUnder } from "../e2e/support/readme.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { needsChromium, openChromium } from "./chromium.ts";

const [upload = "", withProgress = ""] = blocksUnder("docs/uploads.md", "In a page", "js");
const [byCurl = ""] = blocksUnder("docs/uploads.md", "With curl", "sh");

let server: NpmStart;
let token: string;
beforeAll(async () => {
  server = await NpmStart.start({ settings: { SESSION_PLAN: "developer" } });
  const session = await fetch(`${server.url}/sessions`, { method: "POST", body: "{}" });
  ({ token } = (await session.json()) as { token: string });
});
afterAll(() => server.stop());

describe("curl", () => {
  it("announces a file and puts it, by the page's own lines", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-"));
    try {
      const photo = Buffer.alloc(100_000, 7);
      photo.set([0xff, 0xd8, 0xff, 0xe0]);
      writeFileSync(join(folder, "photo.jpg"), photo);
      const env = { ...process.env, URL: server.url, TOKEN: token };
      const ran = spawnSync("bash", ["--norc", "-ec", byCurl], { cwd: folder, env, encoding: "utf8" });
      expect(ran.status, ran.stderr).toBe(0);
      const { url } = JSON.parse(ran.stdout) as { url: string };
      expect(Buffer.from(await (await fetch(url)).arrayBuffer()).equals(photo)).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a page of another origin, in Chromium", () => {
  let browser: Browser | undefined;
  let pages: HttpServer;
  let origin: string;
  let page: Page;
  let faults: string[];
  beforeAll(async () => {
    pages = createServer((_, response) => {
      response.setHeader("Content-Type", "text/html").end("<!doctype html><link rel=icon href=data:,><p>An app</p>");
    });
    origin = await listenLocally(pages);
  });
  afterAll(async () => {
    await browser?.close();
    pages.closeAllConnections();
    pages.close();
  });
  beforeEach(async (context) => {
    needsChromium(context);
    browser ??= await openChromium();
    page = await browser.newPage();
    faults = [];
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(error.message));
    await page.goto(origin);
    return () => page.context().close();
  });

  /** The page's program, in a function that has what it takes for granted. */
  const inPage = <T>(lines: string) =>
    page.evaluate<T>(`(async () => { const token = ${JSON.stringify(token)};\n${lines} })()`);
  const here = (lines: string) => lines.replace("https://gateway.example.com", server.url);
  /** Twelve megapixels, as a phone takes them: sky above, land below, and grain that does not pack away. */
  const photo = `
    const canvas = new OffscreenCanvas(4000, 3000);
    const paint = canvas.getContext("2d");
    const light = paint.createLinearGradient(0, 0, 0, 3000);
    light.addColorStop(0, "#3060ff"); light.addColorStop(0.5, "#ffd0a0"); light.addColorStop(0.5, "#207020"); light.addColorStop(1, "#103810");
    paint.fillStyle = light;
    paint.fillRect(0, 0, 4000, 3000);
    for (let n = 0; n < 250000; n++) {
      paint.fillStyle = "rgba(" + [n % 255, (n * 7) % 255, (n * 13) % 255] + ",0.3)";
      paint.fillRect((n * 7919) % 4000, (n * 104729) % 3000, 9, 5);
    }
    const file = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.95 });`;

  /** Which colour is strongest, at the top and at the bottom. */
  const lookOf = `
    const lookOf = (source, width, height) => {
      const canvas = new OffscreenCanvas(width, height);
      const paint = canvas.getContext("2d");
      paint.drawImage(source, 0, 0);
      const strongest = (top, rows) => {
        const sums = [0, 0, 0];
        paint.getImageData(0, top, width, rows).data.forEach((value, at) => at % 4 < 3 && (sums[at % 4] += value));
        return ["red", "green", "blue"][sums.indexOf(Math.max(...sums))];
      };
      const band = Math.floor(height / 5);
      return strongest(0, band) + " above " + strongest(height - band, band);
    };`;

  it("uploads a photo with progress, edits it, animates it and plays the film", { timeout: 60_000 }, async () => {
    // A home's line: what is sent at once has no progress to tell.
    const devtools = await page.context().newCDPSession(page);
    const line = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 8_000_000 };
    await devtools.send("Network.emulateNetworkConditions", line);
    const announce = upload.slice(0, upload.indexOf("await fetch(put.url"));
    const made = await inPage<{ url: string; size: number; steps: number[] }>(`
      ${photo}
      ${here(announce)}
      const steps = [];
      const progress = { set value(share) { steps.push(share); } };
      await new Promise((use, reject) => {
        const fail = (detail) => reject(new Error(detail));
        ${withProgress}
      });
      return { url, size: file.size, steps };`);
    expect(made.size).toBeGreaterThan(1_000_000);
    expect(made.steps.length).toBeGreaterThan(1);
    expect(made.steps.at(-1)).toBe(1);
    const shown = await inPage<[number, number]>(`
      const image = new Image();
      image.crossOrigin = "anonymous";
      image.src = ${JSON.stringify(made.url)};
      await image.decode();
      return [image.naturalWidth, image.naturalHeight];`);
    expect(shown).toEqual([4000, 3000]);

    const run = (model: string, input: object) =>
      inPage<{ status: string; output: { image_url: string; video_url: string } }>(`
        const job = await fetch("${server.url}/v2/${model}/runsync", {
          method: "POST",
          headers: { Authorization: "Bearer " + token },
          body: JSON.stringify({ input: ${JSON.stringify(input)} }),
        });
        return job.json();`);
    const edited = await run("qwen-image-edit", { prompt: "the same in winter", image: made.url, size: "1024*768" });
    expect(edited.status).toBe("COMPLETED");
    const film = await run("wan-2-6-i2v", { prompt: "the lake moves", image: edited.output.image_url });
    expect(film.status).toBe("COMPLETED");
    const played = await inPage<{ time: number; seconds: number; beginning: string; edited: string }>(`
      ${lookOf}
      const picture = new Image();
      picture.crossOrigin = "anonymous";
      picture.src = ${JSON.stringify(edited.output.image_url)};
      await picture.decode();
      const edited = lookOf(picture, picture.naturalWidth, picture.naturalHeight);
      const video = document.createElement("video");
      video.muted = true;
      video.crossOrigin = "anonymous";
      video.src = ${JSON.stringify(film.output.video_url)};
      document.body.append(video);
      const shown = new Promise((resolve) => video.requestVideoFrameCallback(resolve));
      await video.play();
      await shown;
      const beginning = lookOf(video, video.videoWidth, video.videoHeight);
      while (video.currentTime === 0) await new Promise((resolve) => video.addEventListener("timeupdate", resolve, { once: true }));
      return { time: video.currentTime, seconds: video.duration, beginning, edited };`);
    expect(played.time).toBeGreaterThan(0);
    expect(played.seconds).toBe(5);
    // Sky above, land below, as on the photo.
    expect([played.edited, played.beginning]).toEqual(["blue above green", "blue above green"]);
    expect(faults).toEqual([]);
  });

  it("uploads and edits by the program of the docs, as it stands", async () => {
    const output = await inPage<{ image_url: string }>(`${photo}\n${here(upload)}\nreturn output;`);
    expect(output.image_url).toMatch(/\/images\//);
    expect(faults).toEqual([]);
  });
});
