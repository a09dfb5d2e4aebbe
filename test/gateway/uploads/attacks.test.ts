// What may be tried against uploads: each row begins with what is right, changes one thing, and leaves nothing behind.
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ErrorCode } from "../../../src/errors.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { expectProblem } from "../../support/problems.ts";
import { testSettings } from "../../support/settings.ts";
import { type Announced, counted, fileOf, filesInBucket, inMeter, jpeg, Uploader } from "./uploader.ts";

let user: Uploader;
let token: string;
const size = 1000;
const free = { "token-bytes-day": [0, 0], "token-stored": [0, 0] };
const held = { "token-bytes-day": [size, size], "token-stored": [size, size] };
const text = (words: string) => [...new TextEncoder().encode(words)];

beforeEach(async () => {
  user = new Uploader();
  token = await user.token("ada", counted);
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  expect(await inMeter("user:ada", (meter) => meter.audit())).toEqual([]);
  await emptyStorage();
});

describe("a signature", () => {
  const otherHex = (hex: string) => (hex.startsWith("0") ? `1${hex.slice(1)}` : `0${hex.slice(1)}`);
  const changes: [name: string, change: (url: URL) => void][] = [
    ["signature", (url) => url.searchParams.set("signature", otherHex(url.searchParams.get("signature") ?? ""))],
    ["no signature", (url) => url.searchParams.delete("signature")],
    ["empty signature", (url) => url.searchParams.set("signature", "")],
    ["two signatures", (url) => url.searchParams.append("signature", url.searchParams.get("signature") ?? "")],
    ["signature in capitals", (url) => url.searchParams.set("signature", "ABCDEF0123456789ABCDEF0123456789")],
    ["more bytes", (url) => url.searchParams.set("bytes", "1001")],
    ["fewer bytes", (url) => url.searchParams.set("bytes", "999")],
    ["bytes written otherwise", (url) => url.searchParams.set("bytes", "01000")],
    ["bytes below zero", (url) => url.searchParams.set("bytes", "-1000")],
    ["later", (url) => url.searchParams.set("until", String(Number(url.searchParams.get("until")) + 1))],
    ["for ever", (url) => url.searchParams.set("until", "9999999999999")],
    ["another's meter", (url) => url.searchParams.set("meter", env.USER_METER.idFromName("user:bob").toString())],
    ["no meter at all", (url) => url.searchParams.set("meter", "0".repeat(64))],
    ["another owner", (url) => url.searchParams.set("owner", "0123456789abcdef")],
    ["one member more", (url) => url.searchParams.set("type", "text/html")],
    [
      "no query",
      (url) => {
        url.search = "";
      },
    ],
  ];

  it.each(changes)("is not changed: %s", async (_, change) => {
    const announced = await user.announced(token);
    const url = new URL(announced.put.url);
    change(url);
    await expectProblem(await user.ask("PUT", url.href, { body: jpeg(size) }), "FORBIDDEN");
    expect(await filesInBucket()).toEqual([]);
    // It says nothing about the reservation: who has the right address may still use it.
    expect(await user.used(token)).toEqual(held);
    expect((await user.put(announced, jpeg(size))).status).toBe(201);
  });

  it("of one upload is worth nothing for another", async () => {
    const [one, other] = [await user.announced(token), await user.announced(token)];
    const url = new URL(other.put.url);
    url.search = new URL(one.put.url).search;
    await expectProblem(await user.ask("PUT", url.href, { body: jpeg(size) }), "FORBIDDEN");
  });

  it("of another secret is none", async () => {
    const elsewhere = new Uploader({ SIGNING_SECRET: "another-secret-of-the-tests-0123456789ab" });
    const announced = await elsewhere.announced(await elsewhere.token("ada"));
    await expectProblem(await user.put(announced, jpeg(size)), "NOT_FOUND");
  });

  it("of the secret before still counts while secrets are changed", async () => {
    const announced = await user.announced(token);
    const secrets = `new-secret-of-the-tests-0123456789abcdef,${testSettings.SIGNING_SECRET}`;
    const rotated = new Uploader({ SIGNING_SECRET: secrets });
    expect((await rotated.put(announced, jpeg(size))).status).toBe(201);
  });
});

describe("a key", () => {
  const changes: [name: string, change: (key: string) => string][] = [
    ["a later end", (key) => key.replace(/-0(.{8})-/, "-1$1-")],
    ["another type", (key) => key.replace(/\.jpg$/, ".mp4")],
    ["a page's name", (key) => key.replace(/\.jpg$/, ".html")],
    ["no ending", (key) => key.replace(/\.jpg$/, "")],
    ["another's random part", (key) => `${"0".repeat(32)}${key.slice(32)}`],
    ["capitals", (key) => key.toUpperCase()],
    ["a path up", (key) => `..%2Fuploads%2F${key}`],
    ["a file of a sample's", () => "..%2F0mwtijrar-0a8057db3df047d18d5c4a07ea06ec17.png"],
    ["a slash within", (key) => `${key.slice(0, 10)}%2F${key.slice(10)}`],
    ["a byte of zero", (key) => `${key}%00.jpg`],
    ["a dot more", (key) => `${key}.`],
    ["a picture's key", () => `${"0".repeat(32)}-i0mwtijrar-0123456789abcdef`],
  ];

  it.each(changes)("leads nowhere with %s, and no storage is asked", async (_, change) => {
    const { id } = await user.uploaded(token);
    const asked = new Uploader({ MEDIA: new Proxy({}, { get: () => () => Promise.reject(new Error("asked")) }) });
    const path = `/uploads/${change(id)}`;
    await expectProblem(await asked.ask("GET", path), "NOT_FOUND");
    await expectProblem(await asked.ask("DELETE", path, { token }), "NOT_FOUND");
    expect((await user.ask("GET", `/uploads/${id}`)).status).toBe(200);
  });
});

describe("a file that is not what was announced", () => {
  const wrong: [name: string, type: string, head: number[]][] = [
    ["SVG", "image/png", text('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')],
    ["HTML", "image/png", text("<!doctype html><script>alert(1)</script>")],
    ["HTML after blanks", "image/gif", text("   \n<html>")],
    ["a PDF", "image/jpeg", text("%PDF-1.7")],
    ["a zip", "image/webp", [0x50, 0x4b, 3, 4]],
    ["a program", "video/mp4", [0x7f, 0x45, 0x4c, 0x46]],
    ["XML", "audio/mpeg", text('<?xml version="1.0"?>')],
    ["another picture", "image/png", [0xff, 0xd8, 0xff, 0xe0]],
    ["a sound as a picture", "image/webp", text("RIFF1234WAVE")],
    ["a film as a picture", "image/avif", [0, 0, 0, 24, ...text("ftypisom")]],
    ["HEIC as a film", "video/mp4", [0, 0, 0, 24, ...text("ftypheic")]],
    ["half a signature", "image/png", [0x89, 0x50, 0x4e, 0x47]],
    ["a byte order mark", "image/gif", [0xef, 0xbb, 0xbf, ...text("GIF89a")]],
    ["nothing but zeros", "image/jpeg", [0]],
  ];

  it.each(wrong)("is refused: %s", async (_, type, head) => {
    const announced = await user.announced(token, { type, bytes: size });
    const body = new Uint8Array(size);
    body.set(head);
    await expectProblem(await user.put(announced, body), "UNSUPPORTED_TYPE");
    expect(await filesInBucket()).toEqual([]);
    expect(await user.used(token)).toEqual(free);
    // The address is used up.
    await expectProblem(await user.put(announced, jpeg(size)), type === "image/jpeg" ? "GONE" : "UNSUPPORTED_TYPE");
    await expectProblem(await user.ask("GET", announced.url), "NOT_FOUND");
  });

  const polyglots: [name: string, type: string, head: number[]][] = [
    ["GIF and script", "image/gif", text("GIF89a/*<svg onload=alert(1)>*/=1;alert(1)")],
    ["JPEG and HTML", "image/jpeg", [0xff, 0xd8, 0xff, 0xe0, ...text("<html><script>alert(1)</script>")]],
    ["PNG and HTML", "image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...text("<html>")]],
    ["MP3 and HTML", "audio/mpeg", text("ID3<html><script>alert(1)</script>")],
  ];

  it.each(polyglots)("is nothing else to any browser: %s", async (_, type, head) => {
    const announced = await user.announced(token, { type, bytes: size });
    expect((await user.put(announced, fileOf(head, size))).status).toBe(201);
    const served = await user.ask("GET", announced.url, { headers: { Accept: "text/html" } });
    expect(served.headers.get("Content-Type")).toBe(type);
    expect(served.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(served.headers.get("Content-Security-Policy")).toMatch(/default-src 'none'.*sandbox/);
  });

  const sent: [name: string, code: ErrorCode, put: (announced: Announced) => Promise<Response>][] = [
    ["longer", "PAYLOAD_TOO_LARGE", (announced) => user.put(announced, jpeg(size + 1))],
    ["longer, in chunks", "PAYLOAD_TOO_LARGE", (announced) => user.put(announced, chunked(jpeg(size + 1)))],
    ["far longer, in chunks", "PAYLOAD_TOO_LARGE", (announced) => user.put(announced, chunked(jpeg(900_000)))],
    ["shorter", "INVALID_REQUEST", (announced) => user.put(announced, jpeg(size - 1))],
    ["shorter, in chunks", "INVALID_REQUEST", (announced) => user.put(announced, chunked(jpeg(size - 1)))],
    ["empty", "INVALID_REQUEST", (announced) => user.put(announced, undefined)],
    ["a form", "UNSUPPORTED_TYPE", (announced) => user.put(announced, jpeg(size), { "Content-Type": "text/html" })],
    ["compressed", "UNSUPPORTED_TYPE", (announced) => user.put(announced, jpeg(size), { "Content-Encoding": "gzip" })],
  ];

  it.each(sent)("is refused where it is %s", async (_, code, put) => {
    const announced = await user.announced(token);
    await expectProblem(await put(announced), code);
    expect(await filesInBucket()).toEqual([]);
    expect(await user.used(token)).toEqual(free);
  });

  it("is taken in chunks of its exact size", async () => {
    const file = jpeg(300_000);
    const announced = await user.announced(token, { bytes: file.byteLength });
    expect((await user.put(announced, chunked(file))).status).toBe(201);
    const served = await user.ask("GET", announced.url);
    expect(new Uint8Array(await served.arrayBuffer())).toEqual(file);
  });
});

describe("an announcement", () => {
  const refused: [what: object, code: ErrorCode][] = [
    [{ type: "image/svg+xml" }, "UNSUPPORTED_TYPE"],
    [{ type: "text/html" }, "UNSUPPORTED_TYPE"],
    [{ type: "image/heic" }, "UNSUPPORTED_TYPE"],
    [{ type: "__proto__" }, "UNSUPPORTED_TYPE"],
    [{ type: "constructor" }, "UNSUPPORTED_TYPE"],
    [{ type: "" }, "UNSUPPORTED_TYPE"],
    [{ type: 7 }, "INVALID_REQUEST"],
    [{ bytes: 64 * 1024 * 1024 + 1 }, "PAYLOAD_TOO_LARGE"],
    [{ bytes: 0 }, "INVALID_REQUEST"],
    [{ bytes: -1 }, "INVALID_REQUEST"],
    [{ bytes: 1.5 }, "INVALID_REQUEST"],
    [{ bytes: "1000" }, "INVALID_REQUEST"],
    [{ bytes: 1e300 }, "INVALID_REQUEST"],
    [{ ttlSeconds: 0 }, "INVALID_REQUEST"],
    [{ ttlSeconds: 7 * 24 * 3600 + 1 }, "INVALID_REQUEST"],
    [{ owner: "user:bob" }, "INVALID_REQUEST"],
  ];

  it.each(refused)("is refused, and reserves nothing: %j", async (more, code) => {
    expect((await user.announce(token)).status).toBe(200);
    await expectProblem(await user.announce(token, more), code);
    expect(await user.used(token)).toEqual(held);
  });

  it("is a user's, whose token is for it", async () => {
    await expectProblem(await user.announce(undefined), "UNAUTHORIZED");
    const narrow = await user.token("ada", { ...counted, operations: ["run"] });
    await expectProblem(await user.announce(narrow), "OPERATION_FORBIDDEN");
  });
});

describe("another user", () => {
  it("sees nothing, deletes nothing, and learns nothing of what there is", async () => {
    const { id, url } = await user.uploaded(token);
    const bob = await user.token("bob", counted);
    expect((await user.list(bob)).uploads).toEqual([]);
    const other = await expectProblem(await user.ask("DELETE", url, { token: bob }), "NOT_FOUND");
    await user.ask("DELETE", url, { token });
    const gone = await expectProblem(await user.ask("DELETE", url, { token: bob }), "NOT_FOUND");
    expect(gone["detail"]).toBe(other["detail"]);
    await expectProblem(await user.ask("DELETE", `/uploads/${id}`), "UNAUTHORIZED");
  });

  it("pays for what is his", async () => {
    await user.uploaded(token);
    expect(await user.used(await user.token("bob", counted))).toEqual(free);
  });
});

describe("an address that is used twice", () => {
  it("works once", async () => {
    const announced = await user.uploaded(token);
    await expectProblem(await user.put(announced, jpeg(size)), "ALREADY_UPLOADED");
    const other = fileOf([0xff, 0xd8, 0xff, 0xee], size);
    await expectProblem(await user.put(announced, other), "ALREADY_UPLOADED");
    expect(new Uint8Array(await (await user.ask("GET", announced.url)).arrayBuffer())).toEqual(jpeg(size));
  });

  it("does not bring back what its owner deleted", async () => {
    const announced = await user.uploaded(token);
    await user.ask("DELETE", announced.url, { token });
    await expectProblem(await user.put(announced, jpeg(size)), "GONE");
    expect(await filesInBucket()).toEqual([]);
  });

  it("is over where its owner deleted it before", async () => {
    const announced = await user.announced(token);
    expect((await user.ask("DELETE", announced.url, { token })).status).toBe(204);
    expect(await user.used(token)).toEqual(free);
    await expectProblem(await user.put(announced, jpeg(size)), "GONE");
  });

  it("leaves nothing where its owner deletes it while it comes", async () => {
    const announced = await user.announced(token);
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    const putting = user.put(announced, readable);
    await writer.write(jpeg(size).subarray(0, 600));
    expect((await user.ask("DELETE", announced.url, { token })).status).toBe(204);
    await writer.write(jpeg(size).subarray(600));
    await writer.close();
    await expectProblem(await putting, "GONE");
    expect(await user.used(token)).toEqual(free);
    expect(await filesInBucket()).toEqual([]);
    await expectProblem(await user.ask("GET", announced.url), "NOT_FOUND");
  });

  it("counts once, however often its owner deletes it at once", async () => {
    const announced = await user.uploaded(token);
    const answers = await Promise.all(Array.from({ length: 8 }, () => user.ask("DELETE", announced.url, { token })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
    expect(await user.used(token)).toEqual({ "token-bytes-day": [size, 0], "token-stored": [0, 0] });
  });

  it("is won by one of two that race", async () => {
    for (let round = 0; round < 5; round++) {
      const bytes = 150_000;
      const announced = await user.announced(token, { bytes, ttlSeconds: 3600 });
      const [one, other] = [jpeg(bytes), fileOf([0xff, 0xd8, 0xff, 0xee], bytes)];
      const answers = await Promise.all([user.put(announced, one), new Uploader().put(announced, other)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      const kept = new Uint8Array(await (await user.ask("GET", announced.url)).arrayBuffer());
      expect(kept).toEqual(answers[0]?.status === 201 ? one : other);
      await user.ask("DELETE", announced.url, { token });
    }
    expect(await user.used(token)).toEqual({ "token-bytes-day": [750_000, 0], "token-stored": [0, 0] });
  });

  it("counts the file that is there, though the first call's own word was lost", async () => {
    const announced = await user.announced(token);
    const lost = vi.spyOn((await meterClass()).prototype, "keepUpload").mockImplementation(() => {
      throw new Error("lost");
    });
    await expectProblem(await user.put(announced, jpeg(size)), "METER_UNAVAILABLE");
    expect(await user.used(token)).toEqual(held);
    lost.mockRestore();
    await expectProblem(await user.put(announced, jpeg(size)), "ALREADY_UPLOADED");
    expect(await user.used(token)).toEqual({ "token-bytes-day": [size, 0], "token-stored": [size, 0] });
    expect((await user.list(token)).uploads).toHaveLength(1);
  });
});

describe("a PUT that breaks off", () => {
  it("leaves nothing wherever it is cut, and may be tried again", async () => {
    const step = 64 * 1024;
    const file = jpeg(7 * step + 100);
    const announced = await user.announced(token, { bytes: file.byteLength });
    for (let cut = 0; cut < file.byteLength; cut += step) {
      const response = await user.put(announced, brokenOff(file, cut)).catch(() => undefined);
      if (response) await expectProblem(response, "INVALID_REQUEST");
      expect(await filesInBucket()).toEqual([]);
      await expectProblem(await user.ask("GET", announced.url), "NOT_FOUND");
    }
    expect((await user.put(announced, file)).status).toBe(201);
    const served = await user.ask("GET", announced.url);
    expect(new Uint8Array(await served.arrayBuffer())).toEqual(file);
  });
});

describe("a token that was revoked", () => {
  it("announces nothing, and its addresses work no more", async () => {
    const announced = await user.announced(token);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1000 });
    const revoked = await user.ask("POST", "/admin/users/ada/revoke", { token: testSettings.ADMIN_TOKEN, json: {} });
    expect(revoked.status).toBeLessThan(300);
    await expectProblem(await user.announce(token), "TOKEN_REVOKED");
    await expectProblem(await user.put(announced, jpeg(size)), "GONE");
    expect(await filesInBucket()).toEqual([]);
  });
});

it("a user who is revoked at the meter alone reserves nothing, as isolates learn of it later", async () => {
  await inMeter("user:ada", (meter) => meter.revoke("user:ada", Date.now() + 1000));
  await expectProblem(await user.announce(token), "TOKEN_REVOKED");
  expect(await inMeter("user:ada", (meter) => meter.uploads("user:ada", undefined, 10))).toEqual([]);
});

it("two visitors at one address, who share a meter, do not share their uploads", async () => {
  const visitor = async () =>
    (await (await user.ask("POST", "/sessions", { json: {} })).json<{ token: string }>()).token;
  const [eve, bob] = [await visitor(), await visitor()];
  const announced = await user.uploaded(bob);
  await expectProblem(await user.ask("DELETE", `/uploads/${announced.id}`, { token: eve }), "NOT_FOUND");
  expect((await user.list(eve)).uploads).toEqual([]);
  expect((await user.list(bob)).uploads).toHaveLength(1);
  expect(await filesInBucket()).toHaveLength(1);
});

describe("ten thousand open reservations", () => {
  const reserve = (from: number, to: number) =>
    inMeter("user:ada", async (meter) => {
      const now = Date.now();
      let admitted = 0;
      for (let n = from; n < to; n++) {
        const key = `${String(n).padStart(32, "0")}-0mwtijrar-0123456789abcdef.jpg`;
        const claims = {
          plan: "unlimited",
          planFrom: "token",
          plans: "{}",
          token: undefined,
          hasCeiling: false,
        } as const;
        const bearer = { issuedAt: now, tokenId: undefined };
        const request = { ...claims, key, owner: "user:ada", bearer, type: "image/jpeg", bytes: 1 };
        const answer = await meter.reserveUpload({ ...request, putUntil: now + 600_000, expiresAt: now + 86_400_000 });
        if ("admitted" in answer && answer.admitted) admitted++;
      }
      expect(meter.audit()).toEqual([]);
      return admitted;
    });
  const rows = () => inMeter("user:ada", (_, { storage }) => storage.sql.exec("SELECT key FROM uploads").toArray());

  it("are a thousand: the next one is refused until one is sent, given up, or over", async () => {
    const announced = [await user.announced(token), await user.announced(token)] as const;
    expect(await reserve(0, 9_998)).toBe(998);
    const refused = await user.announce(token);
    expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(590);
    const { detail } = await expectProblem(refused, "RATE_LIMITED");
    expect(detail).toBe("More than 1000 uploads were announced and not sent.");
    expect(await user.used(token)).toMatchObject({ "token-stored": [2 * size, 2 * size] });
    expect((await user.list(token)).uploads).toEqual([]);
    expect((await user.announce(await user.token("bob", counted))).status).toBe(200);

    expect((await user.put(announced[0], jpeg(size))).status).toBe(201);
    expect((await user.announce(token)).status).toBe(200);
    await expectProblem(await user.announce(token), "RATE_LIMITED");
    expect((await user.ask("DELETE", announced[1].url, { token })).status).toBe(204);
    expect((await user.announce(token)).status).toBe(200);
    await expectProblem(await user.announce(token), "RATE_LIMITED");
  });

  it("are free again at once when their time is over", async () => {
    await reserve(0, 1000);
    await expectProblem(await user.announce(token), "RATE_LIMITED");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 600_000 });
    expect((await user.announce(token)).status).toBe(200);
    expect(await rows()).toHaveLength(1);
    expect(await user.used(token)).toEqual(held);
  });
});

async function meterClass(): Promise<{ prototype: { keepUpload(key: string): string } }> {
  return inMeter("user:ada", (meter) => meter.constructor as never);
}

/** Without a stated length. */
function chunked(file: Uint8Array<ArrayBuffer>): ReadableStream {
  const { readable, writable } = new IdentityTransformStream();
  const send = async () => {
    const writer = writable.getWriter();
    for (let at = 0; at < file.byteLength; at += 16_384) await writer.write(file.subarray(at, at + 16_384));
    await writer.close();
  };
  send().catch(() => {});
  return readable;
}

function brokenOff(file: Uint8Array<ArrayBuffer>, at: number): ReadableStream {
  const { readable, writable } = new IdentityTransformStream();
  const send = async () => {
    const writer = writable.getWriter();
    if (at > 0) await writer.write(file.subarray(0, at));
    await writer.abort(new Error("the client left"));
  };
  send().catch(() => {});
  return readable;
}
