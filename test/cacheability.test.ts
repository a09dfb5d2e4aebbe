// What caches may keep: files by their links, and nothing else. A cache in front of the Worker keeps whatever does not forbid it.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { app, routes } from "../src/app.ts";
import { limits } from "../src/contract/limits.ts";
import { platformRoutes } from "../src/platform/app.ts";
import { putMedia } from "../src/platform/media.ts";
import { model, png, Studio, World } from "./gateway/media/studio.ts";
import { jpeg, Uploader } from "./gateway/uploads/uploader.ts";
import { CacheInFront } from "./support/cache-in-front.ts";
import { emptyStorage } from "./support/empty-storage.ts";
import { call, origin, type Settings } from "./support/front-door.ts";
import { expectProblem } from "./support/problems.ts";
import { testSettings } from "./support/settings.ts";

const stated = [...routes, ...platformRoutes].map(({ operation }) => operation);
const cacheControl = (response: Response) => response.headers.get("Cache-Control");
const page = "https://app.example.com";

afterEach(emptyStorage);

describe("an answer that nobody may keep", () => {
  it("is that of every route but those of files", () => {
    const open = stated.filter(({ cache }) => cache === "public").map(({ method, path }) => `${method} ${path}`);
    expect(open.sort()).toEqual(["get /images/{key}", "get /platform/media/{file}", "get /uploads/{key}"]);
  });

  it("says so at every route, whoever asks, whatever comes of it", async () => {
    const mounted = app.mounted.filter(({ method }) => method !== "ALL").map(({ method, path }) => ({ method, path }));
    expect(mounted.length).toBeGreaterThan(60);
    const keys = [undefined, testSettings.ADMIN_TOKEN, testSettings.PLATFORM_API_KEY];
    for (const { method, path } of mounted) {
      const asked = path.replaceAll(/:model(\{[^}]*\})?/g, model).replaceAll(/:\w+(\{[^}]*\})?/g, "x");
      for (const key of keys) {
        const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
        const response = await call(method, asked, { headers });
        expect([method, asked, response.status, cacheControl(response)]).toEqual([
          method,
          asked,
          response.status,
          "no-store",
        ]);
        await response.body?.cancel();
      }
    }
  });

  it.each<[string, string, string, Settings]>([
    ["of a route that is none", "GET", "/nowhere", {}],
    ["to another method", "POST", "/healthz", {}],
    ["to a preflight", "OPTIONS", "/images/x", {}],
    ["of a wrong deployment", "GET", "/models", { ADMIN_TOKEN: "" }],
  ])("is the one %s", async (_what, method, path, settings) => {
    expect(cacheControl(await call(method, path, { settings }))).toBe("no-store");
  });

  it("is a user's own: usage, gallery, status, events", async () => {
    const world = new World();
    const studio = new Studio();
    const token = await studio.token("ada");
    const { id } = await studio.link(token);
    for (const path of ["/usage", "/images", "/uploads", `/v2/${model}/status/${id}`, `/v2/${model}/events/${id}`]) {
      const response = await studio.ask(path, token);
      expect([path, response.status, cacheControl(response)]).toEqual([path, 200, "no-store"]);
    }
    expect(world.calls).not.toEqual([]);
  });
});

describe("a file that has a link", () => {
  let cache: CacheInFront;
  beforeEach(() => {
    cache = new CacheInFront();
  });
  afterEach(() => void vi.useRealTimers());
  const weekSeconds = limits.mediaLifetimeMs / 1000;

  async function painted(settings: ConstructorParameters<typeof Studio>[0] = {}) {
    const world = new World();
    const studio = new Studio(settings);
    const token = await studio.token("ada");
    const { path } = await studio.link(token);
    studio.cache = cache;
    return { world, studio, token, path, key: path.replace("/images/", "") };
  }

  async function uploaded() {
    const user = new Uploader();
    const token = await user.token("ada");
    const file = jpeg(1000);
    const announced = await user.announced(token, { bytes: file.byteLength });
    expect((await user.put(announced, file)).status).toBe(201);
    user.cache = cache;
    return { user, token, file, announced };
  }

  it("is public until the link ends, by a tag, and for an hour at the edge", async () => {
    const { studio, path, key } = await painted();
    const response = await studio.ask(path, undefined);
    const [, left] = /^public, max-age=(\d+), immutable$/.exec(cacheControl(response) ?? "") ?? [];
    expect(Number(left)).toBeGreaterThan(weekSeconds - 60);
    expect(Number(left)).toBeLessThanOrEqual(weekSeconds);
    expect(response.headers.get("Cloudflare-CDN-Cache-Control")).toBe("public, max-age=3600, must-revalidate");
    expect(response.headers.get("Cache-Tag")).toBe(key);
    expect(key).toMatch(/^[\x21-\x2b\x2d-\x7e]{1,1024}$/);
    expect(response.headers.has("Vary")).toBe(false);
  });

  it("is kept nowhere beyond its link's end", async () => {
    const { studio, path } = await painted();
    vi.useFakeTimers({ now: Date.now() + limits.mediaLifetimeMs - 30_000, toFake: ["Date"] });
    const last = await studio.ask(path, undefined);
    expect(last.status).toBe(200);
    const [seconds] = /\d+/.exec(last.headers.get("Cloudflare-CDN-Cache-Control") ?? "") ?? [];
    expect(Number(seconds)).toBeLessThanOrEqual(30);
    vi.setSystemTime(Date.now() + 31_000);
    const gone = await studio.ask(path, undefined);
    await expectProblem(gone, "GONE");
    expect(cacheControl(gone)).toBe("no-store");
    expect(gone.headers.has("Cloudflare-CDN-Cache-Control")).toBe(false);
  });

  it("is given whole to the cache in front, which cuts ranges itself, and to no other cache", async () => {
    const { studio, path } = await painted();
    const put = vi.spyOn(caches.default, "put");
    const answers = [
      await studio.ask(path, undefined, "GET", { headers: { Range: "bytes=0-9" } }),
      await studio.ask(path, undefined),
    ];
    for (const response of answers) {
      expect([response.status, response.headers.get("X-Cache")]).toEqual([200, "MISS"]);
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(png);
    }
    expect(put).not.toHaveBeenCalled();
    studio.cache = undefined;
    const part = await studio.ask(path, undefined, "GET", { headers: { Range: "bytes=0-9" } });
    expect(part.status).toBe(206);
  });

  it("is asked for again by its tag alone", async () => {
    const { studio, world, path, key } = await painted();
    const asked = world.calls.length;
    const again = await studio.ask(path, undefined, "GET", { headers: { "If-None-Match": `"${key}"` } });
    expect(again.status).toBe(304);
    expect(again.headers.get("Cloudflare-CDN-Cache-Control")).toBe("public, max-age=3600, must-revalidate");
    expect(world.calls.length).toBe(asked);
  });

  it("is purged when its owner deletes it, and when nobody else tries to", async () => {
    const { studio, token, path, key } = await painted();
    await expectProblem(await studio.ask(path, await studio.token("bob"), "DELETE"), "NOT_FOUND");
    expect(cache.purged).toEqual([]);
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    await vi.waitFor(() => expect(cache.purged).toEqual([key]));
    const gone = await studio.ask(path, undefined);
    await expectProblem(gone, "NOT_FOUND");
    expect(cacheControl(gone)).toBe("no-store");
  });

  it("is purged again where the first purge is refused", async () => {
    const { studio, token, path, key } = await painted();
    cache.refusals = 1;
    expect((await studio.ask(path, token, "DELETE")).status).toBe(204);
    await vi.waitFor(() => expect(cache.purged).toEqual([key]), 5_000);
  });

  it("is an upload too: whole, by its tag, purged", async () => {
    const { user, token, file, announced } = await uploaded();
    const response = await user.ask("GET", announced.url, { headers: { Range: "bytes=0-9" } });
    expect(response.status).toBe(200);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(file);
    expect(response.headers.get("Cache-Tag")).toBe(announced.id);
    expect(response.headers.get("Cloudflare-CDN-Cache-Control")).toBe("public, max-age=3600, must-revalidate");
    expect((await user.ask("DELETE", announced.url, { token })).status).toBe(204);
    await vi.waitFor(() => expect(cache.purged).toEqual([announced.id]));
  });

  it("may be read by any page, also where a page that asks for none came first", async () => {
    const { studio, path } = await painted();
    const { headers } = await studio.ask(path, undefined);
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
    expect(headers.get("Access-Control-Expose-Headers")).toContain("ETag");
  });

  it("is a sample's too, which any page may read that asks for the kept copy later", async () => {
    const made = await putMedia(
      env.MEDIA,
      origin,
      { bytes: png, contentType: "image/png", extension: "png" },
      Date.now(),
    );
    const { headers } = await call("GET", new URL(made).pathname);
    expect(headers.get("Cache-Control")).toMatch(/^public, /);
    expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
  });

  it("is told apart by its page where only some may read it, and kept for none that may not", async () => {
    const { studio, path } = await painted({ ALLOWED_ORIGINS: page });
    const asked = (from?: string) =>
      studio.ask(path, undefined, "GET", from === undefined ? {} : { headers: { Origin: from } });
    for (const [from, mayRead, kept] of [
      [undefined, null, true],
      [page, page, true],
      ["https://other.example.com", null, false],
    ] as const) {
      const { headers, status } = await asked(from);
      expect([status, headers.get("Vary"), headers.get("Access-Control-Allow-Origin")]).toEqual([
        200,
        "Origin",
        mayRead,
      ]);
      expect(headers.get("Cache-Control")).toMatch(kept ? /^public, / : /^no-store$/);
      expect(headers.has("Cloudflare-CDN-Cache-Control")).toBe(kept);
    }
  });
});
