// The files of samples: served for seven days, then gone.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { putMedia } from "../../src/platform/media.ts";
import { isolate, send } from "../support/callers.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { call, origin } from "../support/front-door.ts";
import { expectProblem } from "../support/problems.ts";
import { noon, pass, setTime } from "./support/endpoint.ts";

const week = 7 * 24 * 3_600_000;
const file = { bytes: new Uint8Array([1, 2, 3]), contentType: "image/png", extension: "png" };
const put = async () => new URL(await putMedia(env.MEDIA, origin, file, Date.now())).pathname;

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

it("is served as it was made, to any page, for as long as it lives", async () => {
  const path = await put();
  pass(week - 60_000);
  const response = await call("GET", path);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "image/png",
    "content-length": "3",
    etag: expect.stringMatching(/^".+"$/),
    "cache-control": "public, max-age=60, immutable, must-revalidate",
    "cross-origin-resource-policy": "cross-origin",
  });
  expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([1, 2, 3]);
});

it("answers HEAD with the same headers and no body", async () => {
  const response = await call("HEAD", await put());
  expect([response.status, response.headers.get("Content-Length"), await response.text()]).toEqual([200, "3", ""]);
});

it("is gone after seven days, in storage too", async () => {
  const path = await put();
  pass(week);
  await expectProblem(await call("GET", path), "GONE");
  expect(await env.MEDIA.list()).toMatchObject({ objects: [] });
});

it("that never was is not found, whatever its name", async () => {
  const path = await put();
  const other = path.replace(/[0-9a-f]{32}/, "0".repeat(32));
  for (const unknown of [other, path.replace("png", "gif2x"), `${path}x.y`, "/platform/media/x"]) {
    await expectProblem(await call("GET", unknown), "NOT_FOUND");
  }
});

it("is not to be had at the moment while the bucket cannot be reached, which is no fault of ours", async () => {
  const path = await put();
  const away = async () => {
    throw new Error("get: Unspecified error (0)");
  };
  for (const method of ["GET", "HEAD"]) {
    expect((await send(isolate(), method, path)).status).toBe(200);
    const refused = await send(isolate({ MEDIA: { get: away, head: away } }), method, path);
    expect([refused.status, refused.headers.get("Retry-After")]).toEqual([503, "1"]);
    if (method === "GET") await expectProblem(refused, "UNAVAILABLE");
  }
});
