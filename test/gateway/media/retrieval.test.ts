// A link, fetched: whole and in part, from the cache and from its source, and never what is no picture, film or sound.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/contract/limits.ts";
import { ImageCache } from "../../../src/gateway/media/image-cache.ts";
import { mediaKeysOf } from "../../../src/gateway/media/media-key.ts";
import { configOf } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { model, origin, painted, picture, png, Studio, World } from "./studio.ts";

let world: World;
let studio: Studio;
beforeEach(() => {
  world = new World();
  studio = new Studio();
});
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** As a finished job leaves it in KV. */
async function linkTo(url: string): Promise<string> {
  const now = Date.now();
  const expiresAt = now + limits.mediaLifetimeMs;
  const key = await mediaKeysOf(configOf()).mint(crypto.randomUUID().replaceAll("-", ""), "image_url", expiresAt);
  const media = { url, field: "image_url", model, cost: 0.0025, size: null, completedAt: now, expiresAt } as const;
  await new ImageCache(env.IMAGES).put(key, { ...media, owner: "user:ada" }, now);
  return `/images/${key}`;
}
const honest = "https://cdn.example.net/a.png";
const bytesOf = async (response: Response) => new Uint8Array(await response.arrayBuffer());

describe("a link", () => {
  it("answers the picture with all that browsers need, first from its source, then from the cache", async () => {
    const path = await linkTo(honest);
    for (const cache of ["MISS", "HIT"]) {
      const response = await studio.ask(path, undefined, "GET", { headers: { Origin: "https://app.example.com" } });
      expect(response.status).toBe(200);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "content-type": "image/png",
        "content-length": String(png.length),
        "cache-control": expect.stringMatching(/^public, max-age=6047\d\d, immutable$/),
        etag: expect.stringMatching(/^"[^"]+"$/),
        "content-disposition": expect.stringMatching(/^inline; filename="image-[0-9a-f]{12}\.png"$/),
        "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*",
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
        "x-cache": cache,
      });
      expect(response.headers.has("Set-Cookie")).toBe(false);
      expect(await bytesOf(response)).toEqual(png);
    }
    expect(world.count("GET https://cdn")).toBe(1);
  });

  it("is held nowhere where the cache does not take it, whole or from its beginning", async () => {
    const large = new Uint8Array(1_000_000);
    large.set(png);
    world.elsewhere = ({ headers }) =>
      headers.has("Range")
        ? new Response(large.slice(0, 10), {
            status: 206,
            headers: { "Content-Type": "image/png", "Content-Range": `bytes 0-9/${large.length}` },
          })
        : picture(large);
    const refused: Response[] = [];
    vi.spyOn(caches.default, "put").mockImplementation(async (_, response) => {
      refused.push(response as Response);
      throw new Error("full");
    });
    const path = await linkTo(honest);
    expect(await bytesOf(await studio.ask(path, undefined))).toHaveLength(large.length);
    const part = await studio.ask(path, undefined, "GET", { headers: { Range: "bytes=0-9" } });
    expect(await bytesOf(part)).toHaveLength(10);
    expect(refused.map(({ bodyUsed }) => bodyUsed)).toEqual([true, true]);
  });

  it("may be read by the pages that the operator names, and by no other", async () => {
    const named = new Studio({ ALLOWED_ORIGINS: "https://app.example.com" });
    const path = await linkTo(honest);
    const allowed = async (Origin: string) => {
      const { headers } = await named.ask(path, undefined, "GET", { headers: { Origin } });
      expect(headers.get("Cross-Origin-Resource-Policy")).toBe("cross-origin");
      expect(headers.get("Vary")).toContain("Origin");
      return [headers.get("X-Cache"), headers.get("Access-Control-Allow-Origin")];
    };
    expect(await allowed("https://app.example.com")).toEqual(["MISS", "https://app.example.com"]);
    expect(await allowed("https://app.example.com")).toEqual(["HIT", "https://app.example.com"]);
    expect(await allowed("https://other.example.com")).toEqual(["HIT", null]);
  });

  it("sends its source no key, no cookie and nothing of the caller's", async () => {
    let seen: Request | undefined;
    world.elsewhere = (request) => {
      seen = request;
      return picture(png, "image/png", { "Set-Cookie": "a=b" });
    };
    const headers = { Authorization: "Bearer x", Cookie: "a=b", "X-Forwarded-For": "203.0.113.7" };
    const response = await studio.ask(await linkTo(honest), undefined, "GET", { headers });
    expect(response.headers.has("Set-Cookie")).toBe(false);
    expect(Object.keys(Object.fromEntries(seen?.headers ?? []))).toEqual(["accept"]);
    expect(seen?.redirect).toBe("manual");
  });

  it("answers HEAD without a body", async () => {
    const path = await linkTo(honest);
    for (const cache of ["MISS", "HIT"]) {
      const response = await studio.ask(path, undefined, "HEAD");
      expect([response.status, response.headers.get("Content-Length")]).toEqual([200, String(png.length)]);
      expect(response.headers.get("X-Cache")).toBe(cache);
      await (await studio.ask(path, undefined)).arrayBuffer();
    }
  });

  it("answers HEAD as it answers GET of the whole, though it asks for a part", async () => {
    const path = await linkTo(honest);
    for (const cache of ["MISS", "HIT"]) {
      const response = await studio.ask(path, undefined, "HEAD", { headers: { Range: "bytes=0-3" } });
      expect([response.status, response.headers.get("Content-Length")]).toEqual([200, String(png.length)]);
      expect(response.headers.get("X-Cache")).toBe(cache);
      await (await studio.ask(path, undefined)).arrayBuffer();
    }
  });

  it("answers 304 to who has it", async () => {
    const path = await linkTo(honest);
    const etag = (await studio.ask(path, undefined)).headers.get("ETag") ?? "";
    const ask = (given: string) => studio.ask(path, undefined, "GET", { headers: { "If-None-Match": given } });
    for (const given of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const response = await ask(given);
      expect([response.status, response.headers.get("ETag")]).toEqual([304, etag]);
      expect(response.headers.get("Cache-Control")).toMatch(/immutable$/);
    }
    expect((await ask('"x"')).status).toBe(200);
  });

  it.each([
    ["a made-up key", (path: string) => path.replace(/.$/, (last) => (last === "0" ? "1" : "0"))],
    ["another end", (path: string) => path.replace(/-i0/, "-i1")],
    ["no key at all", () => "/images/nothing"],
  ])("is unknown with %s, and asks no storage", async (_, forge) => {
    const path = await linkTo(honest);
    expect((await studio.ask(path, undefined)).status).toBe(200);
    const silent = new Proxy({}, { get: () => () => expect.unreachable("storage was asked") });
    const response = await new Studio({ IMAGES: silent, JOB_MEDIA: silent }).ask(forge(path), undefined);
    await expectProblem(response, "NOT_FOUND");
  });

  it("is known at once, though KV has answered that it is not", async () => {
    const behind = new Studio({ IMAGES: { get: async () => null } });
    await expectProblem(await behind.ask(await linkTo(honest), undefined), "NOT_FOUND");
    const { path } = await behind.link(await behind.token("ada"));
    expect((await behind.ask(path, undefined)).status).toBe(200);
  });

  it("of the embedded platform is fetched without the network", async () => {
    const embedded = new Studio({ UPSTREAM_URL: "" });
    const { path } = await embedded.link(await embedded.token("ada"));
    expect(path).toMatch(/^\/images\//);
    const response = await embedded.ask(path, undefined);
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, "image/jpeg"]);
    expect(world.calls).toEqual([]);
  });
});

describe("a range", () => {
  const ask = (path: string, range: string, more = {}) =>
    studio.ask(path, undefined, "GET", { headers: { Range: range, ...more } });
  const cases: [string, number, string | null, number][] = [
    ["bytes=0-3", 206, `bytes 0-3/${png.length}`, 4],
    ["bytes=8-", 206, `bytes 8-${png.length - 1}/${png.length}`, png.length - 8],
    ["bytes=-5", 206, `bytes ${png.length - 5}-${png.length - 1}/${png.length}`, 5],
    ["bytes=5-2", 200, null, png.length],
    ["lines=1-2", 200, null, png.length],
  ];
  const check = async (response: Response, [range, status, contentRange, length]: (typeof cases)[number]) => {
    expect([range, response.status, response.headers.get("Content-Range")]).toEqual([range, status, contentRange]);
    expect((await bytesOf(response)).length).toBe(length);
    expect(response.headers.get("Content-Type")).toBe("image/png");
  };

  it.each(cases)("%s from the cache", async (...one) => {
    const path = await linkTo(honest);
    await (await studio.ask(path, undefined)).arrayBuffer();
    await check(await ask(path, one[0]), one);
    expect(world.count("GET https://cdn")).toBe(1);
  });

  it.each(cases)("%s of a source that knows no ranges", async (...one) => {
    await check(await ask(await linkTo(honest), one[0]), one);
  });

  const serving =
    (size: (of: number) => number = (of) => of) =>
    (request: Request) => {
      const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.get("Range") ?? "") ?? [];
      if (first === "" && last === "") return picture(png);
      const from = first === "" ? png.length - Number(last) : Number(first);
      const to = first === "" || last === "" ? png.length - 1 : Math.min(Number(last), png.length - 1);
      const headers = { "Content-Range": `bytes ${from}-${to}/${size(png.length)}`, "Content-Type": "text/html" };
      return new Response(png.slice(from, to + 1), { status: 206, headers });
    };

  it.each(cases)("%s of a source that serves ranges", async (...one) => {
    world.elsewhere = serving();
    await check(await ask(await linkTo(honest), one[0]), one);
  });

  it("is not served by a source that answers another part, or too large a whole", async () => {
    const path = await linkTo(honest);
    world.elsewhere = (request) => {
      const other = new Request(request.url, { headers: { Range: "bytes=0-20" } });
      return serving()(request.headers.get("Range") === "bytes=8-9" ? other : request);
    };
    await expectProblem(await ask(path, "bytes=8-9"), "MEDIA_UNAVAILABLE");
    world.elsewhere = serving(() => 65 * 1024 * 1024);
    await expectProblem(await ask(path, "bytes=8-9"), "MEDIA_UNAVAILABLE");
    world.elsewhere = serving();
    expect((await ask(path, "bytes=8-9")).status).toBe(206);
  });

  it("that lies behind the end is refused with the size", async () => {
    const path = await linkTo(honest);
    const response = await ask(path, "bytes=4000-");
    await expectProblem(response, "RANGE_NOT_SATISFIABLE");
    expect(response.headers.get("Content-Range")).toBe(`bytes */${png.length}`);
  });

  it("of another version is the whole", async () => {
    const path = await linkTo(honest);
    const etag = (await studio.ask(path, undefined)).headers.get("ETag") ?? "";
    expect((await ask(path, "bytes=0-3", { "If-Range": etag })).status).toBe(206);
    expect((await ask(path, "bytes=0-3", { "If-Range": '"x"' })).status).toBe(200);
  });
});

describe("a poisoned address", () => {
  it("is a link like any other until somebody fetches it", async () => {
    const token = await studio.token("ada");
    expect((await studio.ask((await studio.link(token)).path, undefined)).status).toBe(200);
    world.submitted = () => painted("https://169.254.169.254/latest/meta-data");
    const { path } = await studio.link(token, { input: { seed: 8 } });
    await expectProblem(await studio.ask(path, undefined), "MEDIA_REFUSED");
    expect(world.calls.filter((call) => call.includes("169.254"))).toEqual([]);
  });

  it.each([
    ...["http://169.254.169.254/latest/meta-data", "https://169.254.169.254/a.png", "https://2852039166/a.png"],
    ...["https://0xa9.0xfe.0xa9.0xfe/a.png", "https://[::ffff:169.254.169.254]/a.png", "https://127.0.0.1/a.png"],
    ...["https://localhost/a.png", "https://metadata.google.internal/a.png", "https://169.254.169.254.nip.io/a.png"],
    ...["http://cdn.example.net/a.png", "https://cdn.example.net:8443/a.png", "https://u:p@cdn.example.net/a.png"],
    ...["file:///etc/passwd", "ftp://cdn.example.net/a.png", "blob:https://cdn.example.net/1", "javascript:alert(1)"],
    ...["https://router.lan/a.png", "https://10.0.0.1/a.png", `${origin}/platform/media/a.png`, "https://intranet/a"],
  ])("%s is never called; the honest one is served", async (poison) => {
    expect((await studio.ask(await linkTo(honest), undefined)).status).toBe(200);
    const path = await linkTo(poison);
    const calls = world.calls.length;
    await expectProblem(await studio.ask(path, undefined), "MEDIA_REFUSED");
    expect(world.calls.length).toBe(calls);
  });

  it("on a host that the operator did not name is not called", async () => {
    const named = new Studio({ MEDIA_HOSTS: "cdn.example.net,localhost:9000" });
    const fetched = async (url: string) => named.ask(await linkTo(url), undefined);
    expect((await fetched(honest)).status).toBe(200);
    expect((await fetched("http://localhost:9000/a.png")).status).toBe(200);
    await expectProblem(await fetched("https://other.example.net/a.png"), "MEDIA_REFUSED");
    await expectProblem(await fetched("http://localhost:9001/a.png"), "MEDIA_REFUSED");
    redirecting("https://other.example.net/a.png");
    await expectProblem(await fetched(honest), "MEDIA_REFUSED");
  });

  const redirecting = (...locations: string[]) => {
    const left = [...locations];
    world.elsewhere = () => {
      const location = left.shift();
      return location === undefined ? picture(png) : new Response(null, { status: 302, headers: { location } });
    };
  };
  const hop = (n: number) => `https://hop${n}.example.net/a.png`;
  it.each<[string, string[], boolean]>([
    ["to another public host", [hop(1)], true],
    ["to a path", ["/b.png"], true],
    ["three times", [hop(1), hop(2), hop(3)], true],
    ["four times", [hop(1), hop(2), hop(3), hop(4)], false],
    ["to the metadata", ["http://169.254.169.254/"], false],
    ["to the metadata, at the second hop", [hop(1), "https://[fd00:ec2::254]/"], false],
    ["to a file", ["file:///etc/passwd"], false],
    ["out of https", ["http://hop1.example.net/a.png"], false],
  ])("redirects %s", async (_, locations, passes) => {
    expect((await studio.ask(await linkTo(honest), undefined)).status).toBe(200);
    redirecting(...locations);
    const response = await studio.ask(await linkTo(honest), undefined);
    if (passes) expect(response.status).toBe(200);
    else await expectProblem(response, "MEDIA_REFUSED");
    expect(world.calls.filter((call) => /169\.254|fd00|file:|http:/.test(call))).toEqual([]);
  });
});

describe("a file", () => {
  const text = (head: string) => new TextEncoder().encode(head.padEnd(64, " "));
  const box = (brand: string) => text(`\0\0\0\x20ftyp${brand}`);
  it.each<[string, Uint8Array, string | undefined]>([
    ["png", png, "image/png"],
    ["jpeg", new Uint8Array([0xff, 0xd8, 0xff, 0xe0, ...png]), "image/jpeg"],
    ["gif", text("GIF89a"), "image/gif"],
    ["webp", text("RIFF....WEBP"), "image/webp"],
    ["avif", box("avif"), "image/avif"],
    ["mp4", box("isom"), "video/mp4"],
    ["webm", new Uint8Array([0x1a, 0x45, 0xdf, 0xa3, ...png]), "video/webm"],
    ["wav", text("RIFF....WAVE"), "audio/wav"],
    ["ogg", text("OggS"), "audio/ogg"],
    ["flac", text("fLaC"), "audio/flac"],
    ["mp3", text("ID3"), "audio/mpeg"],
    ["html", text("<!doctype html><script>"), undefined],
    ["html behind white space", text("\n\n  <html>"), undefined],
    ["svg", text("<svg xmlns="), undefined],
    ["svg behind a declaration", text('<?xml version="1.0"?><svg>'), undefined],
    ["script", text("alert(document.cookie)"), undefined],
    ["pdf", text("%PDF-1.7"), undefined],
    ["nothing", new Uint8Array(), undefined],
  ])("of the kind %s, whatever its source calls it", async (_, bytes, type) => {
    expect((await studio.ask(await linkTo(honest), undefined)).status).toBe(200);
    world.elsewhere = () => picture(bytes, type === undefined ? "image/png" : "text/html");
    const response = await studio.ask(await linkTo(honest), undefined);
    if (type === undefined) return void (await expectProblem(response, "MEDIA_REFUSED"));
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, type]);
  });

  it.each(["GET", "HEAD"])(
    "whose source sends its headers and then nothing is not waited for by %s",
    async (method) => {
      const path = await linkTo(honest);
      const silent = vi.fn();
      const body = new ReadableStream({ type: "bytes", cancel: silent });
      world.elsewhere = () => new Response(body, { headers: { "Content-Length": "1000" } });
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const asked = studio.ask(path, undefined, method);
      await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0), { timeout: 20_000 });
      await vi.advanceTimersByTimeAsync(40_000);
      expect((await asked).status).toBe(502);
      expect(silent).toHaveBeenCalledOnce();
      vi.useRealTimers();
    },
  );

  it("that its source has no more is not there", async () => {
    const path = await linkTo(honest);
    world.elsewhere = () => new Response("no", { status: 404 });
    await expectProblem(await studio.ask(path, undefined), "MEDIA_UNAVAILABLE");
    world.elsewhere = () => Promise.reject(new Error("connection lost"));
    await expectProblem(await studio.ask(path, undefined), "MEDIA_UNAVAILABLE");
  });

  it("that says it is larger than 64 MB is refused at once", async () => {
    const path = await linkTo(honest);
    const sized = (bytes: number) => () => new Response(flow(bytes), { headers: { "Content-Length": String(bytes) } });
    world.elsewhere = sized(64 * 1024 * 1024 + 1);
    await expectProblem(await studio.ask(path, undefined), "MEDIA_REFUSED");
    world.elsewhere = sized(3 * 1024 * 1024);
    expect((await bytesOf(await studio.ask(path, undefined))).length).toBe(3 * 1024 * 1024);
  });

  it.each([
    ["reads it to its end", (response: Response) => response.arrayBuffer()],
    ["leaves in the middle", async (response: Response) => void (await response.body?.cancel())],
  ])("of 5 MB is fetched once, for the cache too, though its first client %s", async (_, act) => {
    const path = await linkTo(honest);
    const bytes = 5 * 1024 * 1024;
    world.elsewhere = () => new Response(flow(bytes), { headers: { "Content-Length": String(bytes) } });
    await act(await studio.ask(path, undefined, "GET", { untouched: true }));
    await vi.waitFor(async () => expect(await caches.default.match(origin + path)).toBeDefined(), { timeout: 5000 });
    const again = await studio.ask(path, undefined);
    expect([again.headers.get("X-Cache"), (await bytesOf(again)).length]).toEqual(["HIT", bytes]);
    expect(world.count("GET https://cdn")).toBe(1);
  });

  it("that breaks off in the middle is not kept", async () => {
    const path = await linkTo(honest);
    const whole = 5 * 1024 * 1024;
    world.elsewhere = () => new Response(flow(whole - 1), { headers: { "Content-Length": String(whole) } });
    const response = await studio.ask(path, undefined, "GET", { untouched: true });
    expect((await drain(response)).whole).toBe(false);
    await vi.waitFor(async () => expect(await caches.default.match(origin + path)).toBeUndefined(), { timeout: 5000 });
  });

  /** As a cache has it that takes a stream that broke off for a whole file. */
  async function halfKept(): Promise<string> {
    const path = await linkTo(honest);
    await bytesOf(await studio.ask(path, undefined));
    const headers = new Headers((await caches.default.match(origin + path))?.headers);
    headers.delete("Content-Length");
    await caches.default.put(origin + path, new Response(png.slice(0, png.length / 2), { headers }));
    return path;
  }

  it("of which the cache has a half is fetched once more", async () => {
    const path = await halfKept();
    for (const found of ["MISS", "HIT"]) {
      const response = await studio.ask(path, undefined);
      expect([response.headers.get("X-Cache"), (await bytesOf(response)).length]).toEqual([found, png.length]);
      await vi.waitFor(async () => expect(await caches.default.match(origin + path)).toBeDefined(), { timeout: 5000 });
    }
  });

  it("of which the cache has a half, and that is large, is never taken for a whole", async () => {
    const large = 1024 * 1024;
    world.elsewhere = () => new Response(flow(large), { headers: { "Content-Length": String(large) } });
    const response = await studio.ask(await halfKept(), undefined, "GET", { untouched: true });
    expect(response.headers.get("X-Cache")).toBe("HIT");
    expect((await drain(response)).whole).toBe(false);
  });

  it.each(["bytes=2-5", `bytes=${png.length - 4}-`])(
    "of which the cache has a half gives %s of the whole",
    async (range) => {
      const response = await studio.ask(await halfKept(), undefined, "GET", { headers: { Range: range } });
      expect([response.status, response.headers.get("X-Cache")]).toEqual([206, "MISS"]);
      expect(response.headers.get("Content-Range")).toContain(`/${png.length}`);
    },
  );

  it("that a client leaves in the middle stays cached", async () => {
    const path = await linkTo(honest);
    await bytesOf(await studio.ask(path, undefined));
    await (await studio.ask(path, undefined, "GET", { untouched: true })).body?.cancel();
    expect((await studio.ask(path, undefined)).headers.get("X-Cache")).toBe("HIT");
  });

  it("that goes on beyond 64 MB is cut there", async () => {
    const path = await linkTo(honest);
    world.elsewhere = () => new Response(flow(1024 * 1024));
    expect((await bytesOf(await studio.ask(path, undefined))).length).toBe(1024 * 1024);
    await caches.default.delete(origin + path);
    world.elsewhere = () => new Response(flow(80 * 1024 * 1024));
    const response = await studio.ask(path, undefined, "GET", { untouched: true });
    expect(response.status).toBe(200);
    const { read, whole } = await drain(response);
    expect(whole).toBe(false);
    expect(read).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(await caches.default.match(origin + path)).toBeUndefined();
  });
});

/** A picture that goes on for so many bytes. */
function flow(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  let begun = false;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const part = new Uint8Array(Math.min(left, 256 * 1024));
      if (!begun) part.set(png.subarray(0, Math.min(png.length, part.length)));
      begun = true;
      left -= part.length;
      controller.enqueue(part);
      if (left <= 0) controller.close();
    },
  });
}

async function drain(response: Response): Promise<{ read: number; whole: boolean }> {
  let read = 0;
  try {
    for await (const part of response.body ?? []) read += part.byteLength;
    return { read, whole: true };
  } catch {
    return { read, whole: false };
  }
}
