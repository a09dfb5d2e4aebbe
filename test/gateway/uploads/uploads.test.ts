// Uploads through the front door: announced, put once, served, listed, deleted, over.
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { counted, fileOf, filesInBucket, inMeter, jpeg, origin, Uploader } from "./uploader.ts";

let user: Uploader;
let token: string;
beforeEach(async () => {
  user = new Uploader();
  token = await user.token("ada", counted);
});
afterEach(async () => {
  vi.useRealTimers();
  expect(await inMeter("user:ada", (meter) => meter.audit())).toEqual([]);
  await emptyStorage();
});

describe("an upload", () => {
  it("is announced, put, served, listed and deleted", async () => {
    const file = jpeg(70_001);
    const before = Date.now();
    const announced = await user.announced(token, { bytes: file.byteLength });
    expect(announced).toMatchObject({
      type: "image/jpeg",
      bytes: 70_001,
      put: { headers: { "Content-Type": "image/jpeg" } },
    });
    expect(announced.url).toBe(`${origin}/uploads/${announced.id}`);
    expect(announced.id).toMatch(/\.jpg$/);
    expect(Date.parse(announced.expiresAt)).toBeGreaterThanOrEqual(before + 24 * 3600_000);
    await expectProblem(await user.ask("GET", announced.url), "NOT_FOUND");
    expect((await user.list(token)).uploads).toEqual([]);

    const put = await user.put(announced, file);
    expect(put.status).toBe(201);
    expect(await put.json()).toEqual({
      id: announced.id,
      url: announced.url,
      type: "image/jpeg",
      bytes: 70_001,
      expiresAt: announced.expiresAt,
    });

    const got = await user.ask("GET", announced.url);
    expect(got.status).toBe(200);
    expect(new Uint8Array(await got.arrayBuffer())).toEqual(file);
    expect(Object.fromEntries(got.headers)).toMatchObject({
      "content-type": "image/jpeg",
      "content-length": "70001",
      "accept-ranges": "bytes",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "cross-origin",
      "access-control-allow-origin": "*",
      etag: `"${announced.id}"`,
    });
    expect(got.headers.get("Content-Security-Policy")).toMatch(/\bsandbox\b/);
    expect(got.headers.get("Content-Disposition")).toMatch(/^inline; filename="upload-[0-9a-f]{12}\.jpg"$/);
    expect(got.headers.get("Cache-Control")).toMatch(/^public, max-age=86(400|3\d\d), immutable$/);

    expect((await user.list(token)).uploads).toMatchObject([{ id: announced.id, bytes: 70_001, type: "image/jpeg" }]);
    expect((await user.ask("DELETE", announced.url, { token })).status).toBe(204);
    await expectProblem(await user.ask("GET", announced.url), "NOT_FOUND");
    expect((await user.list(token)).uploads).toEqual([]);
    expect(await filesInBucket()).toEqual([]);
  });

  it.each(["identity", ""])("may say that it is packed in nothing: %j", async (encoding) => {
    const file = jpeg(1000);
    const announced = await user.announced(token, { bytes: file.byteLength });
    expect((await user.put(announced, file, { "Content-Encoding": encoding })).status).toBe(201);
  });

  it("is served by ranges, to HEAD, and not again to who has it", async () => {
    const file = jpeg(5000);
    const { url, id } = await user.uploaded(token, file);
    const range = async (Range: string, more = {}) => user.ask("GET", url, { headers: { Range, ...more } });
    for (const [asked, from, to] of [
      ["bytes=0-99", 0, 99],
      ["bytes=4990-9999", 4990, 4999],
      ["bytes=-10", 4990, 4999],
      ["bytes=100-", 100, 4999],
    ] as const) {
      const part = await range(asked);
      expect(part.status).toBe(206);
      expect(part.headers.get("Content-Range")).toBe(`bytes ${from}-${to}/5000`);
      expect(part.headers.get("Content-Length")).toBe(String(to - from + 1));
      expect(new Uint8Array(await part.arrayBuffer())).toEqual(file.slice(from, to + 1));
    }
    const beyond = await range("bytes=5000-");
    expect(beyond.headers.get("Content-Range")).toBe("bytes */5000");
    await expectProblem(beyond, "RANGE_NOT_SATISFIABLE");
    expect((await range("bytes=0-9", { "If-Range": '"another"' })).status).toBe(200);
    expect((await range("bytes=0-9", { "If-Range": `"${id}"` })).status).toBe(206);
    expect((await range("bytes=0-1,3-4")).status).toBe(200);
    const same = await user.ask("GET", url, { headers: { "If-None-Match": `"${id}"` } });
    expect([same.status, await same.text()]).toEqual([304, ""]);
    const head = await user.ask("HEAD", url);
    expect([head.status, head.headers.get("Content-Length"), await head.text()]).toEqual([200, "5000", ""]);
  });

  it("may be of every type that the models take, under the names that browsers give them", async () => {
    const text = (words: string) => [...new TextEncoder().encode(words)];
    const box = (brand: string) => [0, 0, 0, 24, ...text(`ftyp${brand}`)];
    const files: Record<string, number[]> = {
      "image/png": [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
      "image/gif": text("GIF89a"),
      "image/webp": text("RIFF1234WEBP"),
      "image/avif": box("avif"),
      "audio/x-wav": text("RIFF1234WAVE"),
      "audio/flac": text("fLaC"),
      "audio/ogg;codecs=opus": text("OggS"),
      "audio/x-m4a": box("M4A "),
      "audio/mp3": text("ID3"),
      "audio/webm;codecs=opus": [0x1a, 0x45, 0xdf, 0xa3],
      "video/mp4": box("isom"),
      "video/quicktime": box("qt  "),
      "video/webm": [0x1a, 0x45, 0xdf, 0xa3],
    };
    for (const [type, head] of Object.entries(files)) {
      const announced = await user.announced(token, { type, bytes: 64 });
      const response = await user.put(announced, fileOf(head, 64), { "Content-Type": type });
      expect([type, response.status]).toEqual([type, 201]);
      const served = await user.ask("GET", announced.url);
      expect(served.headers.get("Content-Type")).toBe(announced.type);
    }
  });

  it("is over when its time is, and says so without a look into the bucket", async () => {
    const { url, put } = await user.uploaded(token, jpeg(1000), { ttlSeconds: 60 });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    const away = new Uploader({ MEDIA: broken("any call") });
    await expectProblem(await away.ask("GET", url), "GONE");
    await expectProblem(await away.ask("DELETE", url, { token }), "GONE");
    await expectProblem(await away.ask("PUT", put.url, { body: jpeg(1000) }), "GONE");
    expect((await user.list(token)).uploads).toEqual([]);
    expect(await user.used(token)).toMatchObject({ "token-stored": [0, 0], "token-bytes-day": [1000, 0] });
  });

  it("is removed from the bucket by the meter's alarm once it is over", async () => {
    const kept = await user.uploaded(token, jpeg(900), { ttlSeconds: 7200 });
    const short = await user.uploaded(token, jpeg(1000), { ttlSeconds: 3600 });
    expect(await filesInBucket()).toHaveLength(2);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(short.expiresAt) });
    await runDurableObjectAlarm(env.USER_METER.getByName("user:ada"));
    expect(await filesInBucket()).toEqual([`uploads/${kept.id}`]);
    vi.setSystemTime(Date.parse(kept.expiresAt));
    await runDurableObjectAlarm(env.USER_METER.getByName("user:ada"));
    expect(await filesInBucket()).toEqual([]);
    vi.setSystemTime(Date.parse(kept.expiresAt) + 16 * 60_000);
    await runDurableObjectAlarm(env.USER_METER.getByName("user:ada"));
    expect(await rows()).toBe(0);
  });
});

describe("what is counted", () => {
  it("is reserved by the address, settled by the file, and freed when it goes", async () => {
    const announced = await user.announced(token, { bytes: 1000 });
    expect(await user.used(token)).toEqual({ "token-bytes-day": [1000, 1000], "token-stored": [1000, 1000] });
    await user.put(announced, jpeg(1000));
    expect(await user.used(token)).toEqual({ "token-bytes-day": [1000, 0], "token-stored": [1000, 0] });
    await user.ask("DELETE", announced.url, { token });
    expect(await user.used(token)).toEqual({ "token-bytes-day": [1000, 0], "token-stored": [0, 0] });
  });

  it("is freed when nothing came in time", async () => {
    const announced = await user.announced(token, { bytes: 1000 });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10 * 60_000 });
    expect(await user.used(token)).toEqual({ "token-bytes-day": [0, 0], "token-stored": [0, 0] });
    await expectProblem(await user.put(announced, jpeg(1000)), "GONE");
    expect(await rows()).toBe(0);
  });

  it("never passes a limit, however many ask at once", async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => user.announce(token, { bytes: 100_000 })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    const refused = answers.find(({ status }) => status !== 200) as Response;
    expect(refused.headers.get("RateLimit")).toContain('"token-stored";r=0');
    const { detail } = await expectProblem(refused, "QUOTA_EXCEEDED");
    expect(detail).toMatch(/token-stored: 100000 bytes would exceed the 500000 bytes kept at the same time/);
    const large = await user.announce(token, { bytes: 1_000_001 });
    expect(large.headers.get("Retry-After")).toBeNull();
    await expectProblem(large, "QUOTA_EXCEEDED");
  });

  it("counts under the plan of a payer, and not at all under a developer's", async () => {
    const free = await user.token("bob", { plan: "free" });
    await user.uploaded(free);
    expect(await user.used(free)).toEqual({ "bytes-day": [1000, 0], stored: [1000, 0] });
    const local = new Uploader({ SESSION_PLAN: "" });
    const session = await (await local.ask("POST", "/sessions", { json: {} })).json<{ token: string; plan: string }>();
    expect(session.plan).toBe("developer");
    await local.uploaded(session.token);
    expect(await local.used(session.token)).toEqual({});
  });

  it("is told in the headers of the answer, and of no job's", async () => {
    const response = await user.announce(token);
    expect(response.headers.get("RateLimit-Policy")).toContain(
      '"token-bytes-day";q=1000000;qu="content-bytes";w=86400',
    );
    expect(response.headers.get("RateLimit")).toMatch(/"token-bytes-day";r=999000;t=\d+/);
    const job = await user.ask("POST", "/v2/z-image-turbo/run", { token, json: { input: { prompt: "a lake" } } });
    expect(job.status).toBe(200);
    expect(job.headers.get("RateLimit-Policy")).toBeNull();
  });
});

describe("without a bucket", () => {
  it("answers 501, and everything else works", async () => {
    const bare = new Uploader({ MEDIA: undefined });
    const { url, put } = await user.announced(token);
    await expectProblem(await bare.announce(token), "NOT_IMPLEMENTED");
    await expectProblem(await bare.ask("GET", "/uploads", { token }), "NOT_IMPLEMENTED");
    await expectProblem(await bare.ask("GET", url), "NOT_IMPLEMENTED");
    await expectProblem(await bare.ask("PUT", put.url, { body: jpeg(1000) }), "NOT_IMPLEMENTED");
    await expectProblem(await bare.ask("DELETE", url, { token }), "NOT_IMPLEMENTED");
    expect((await bare.ask("GET", "/usage", { token })).status).toBe(200);
  });
});

describe("a bucket that is away", () => {
  it("is told as 503, nothing is charged, and the same address works when it is back", async () => {
    const file = jpeg(1000);
    const announced = await user.announced(token);
    const away = new Uploader({ MEDIA: broken("R2 is away") });
    const refused = await away.put(announced, file);
    expect(refused.headers.get("Retry-After")).toBe("1");
    await expectProblem(refused, "UNAVAILABLE");
    expect(await user.used(token)).toEqual({ "token-bytes-day": [1000, 1000], "token-stored": [1000, 1000] });
    expect((await user.put(announced, file)).status).toBe(201);
    await expectProblem(await away.ask("GET", announced.url), "UNAVAILABLE");
    expect((await away.ask("HEAD", announced.url)).status).toBe(503);
    await expectProblem(await away.ask("DELETE", announced.url, { token }), "UNAVAILABLE");
    // It counts for nothing any more, and its owner may ask again.
    expect(await user.used(token)).toMatchObject({ "token-stored": [0, 0] });
    expect((await user.ask("DELETE", announced.url, { token })).status).toBe(204);
    expect(await filesInBucket()).toEqual([]);
  });
});

/** A bucket whose every call fails. */
function broken(reason: string): unknown {
  return new Proxy({}, { get: () => () => Promise.reject(new Error(reason)) });
}

function rows(): Promise<number> {
  return inMeter("user:ada", (_, { storage }) =>
    Number(storage.sql.exec("SELECT COUNT(*) AS n FROM uploads").one()["n"]),
  );
}
