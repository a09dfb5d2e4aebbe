// A picture whose source breaks off in the middle, before the cache of `npm start`, which takes what came for all of it.
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/serve-eventually.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";
import { NpmStart } from "./support/npm-start.ts";

const model = "black-forest-labs-flux-1-schnell";
const patienceMs = 20_000;
const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), Buffer.alloc(150_000, 7)]);

/** The pictures that were asked for: the first answer to each breaks off. */
const asked = new Set<string>();
let jobs = 0;
const upstream = createServer((request, response) => {
  request.resume().on("end", () => {
    const { url = "" } = request;
    if (!url.startsWith("/pictures/")) {
      const output = { image_url: `${upstreamUrl}/pictures/${++jobs}.png`, cost: 0.0025 };
      response.setHeader("Content-Type", "application/json");
      return void response.end(JSON.stringify({ id: `job-${jobs}`, status: "COMPLETED", output }));
    }
    response.writeHead(200, { "Content-Type": "image/png", "Content-Length": png.length });
    if (asked.has(url)) return void response.end(png);
    asked.add(url);
    response.write(png.subarray(0, png.length / 2), () => response.destroy());
  });
});
let upstreamUrl = "";
let server: NpmStart;
let token: string;

beforeAll(async () => {
  upstreamUrl = await listenLocally(upstream);
  const key = "upstream-key-of-this-test-0123456789";
  const { host } = new URL(upstreamUrl);
  server = await NpmStart.start({
    settings: { UPSTREAM_URL: upstreamUrl, UPSTREAM_API_KEY: key, MEDIA_HOSTS: host },
  });
  ({ token } = await post<{ token: string }>("/tokens", testSettings.APP_SECRET, { user: "ada", plan: "unlimited" }));
});
afterAll(async () => {
  await server.stop();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});

async function post<T>(path: string, key: string, body: object): Promise<T> {
  const init = { method: "POST", headers: { Authorization: `Bearer ${key}` }, body: JSON.stringify(body) };
  return (await (await fetch(server.url + path, init)).json()) as T;
}

/** Undefined where it broke off. */
async function look(link: string): Promise<{ bytes: number; cache: string | null } | undefined> {
  const response = await fetch(server.url + new URL(link).pathname);
  const bytes = await response.arrayBuffer().catch(() => undefined);
  return bytes && { bytes: bytes.byteLength, cache: response.headers.get("X-Cache") };
}

it("is cached as a whole, and never as the half that came first", async () => {
  const input = { prompt: "a lighthouse", width: 256, height: 256 };
  const { output } = await post<{ output: { image_url: string } }>(`/v2/${model}/runsync`, token, { input });
  expect((await look(output.image_url))?.cache).not.toBe("HIT");
  const { bytes } = await eventually("a picture from the cache", patienceMs, async () => {
    const seen = await look(output.image_url);
    return seen?.cache === "HIT" && seen;
  });
  expect(bytes).toBe(png.length);
});
