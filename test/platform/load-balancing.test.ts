// Load-balancing endpoints of the platform: which worker is asked, what reaches it, what comes back, and what is refused.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ErrorCode } from "../../src/errors.ts";
import { call } from "../support/front-door.ts";
import { testSettings } from "../support/settings.ts";
import { FakeWorkers, flowing, text } from "./fake-workers.ts";
import { pass, setTime } from "./support/endpoint.ts";

const noon = Date.UTC(2030, 0, 1, 12);
beforeEach(() => setTime(noon));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function expectRefusal(response: Response, status: number, code: ErrorCode, detail?: string) {
  const body = await response.json<{ code: string; error: string }>();
  expect([response.status, body.code]).toEqual([status, code]);
  if (detail !== undefined) expect(body.error).toBe(detail);
}

describe("a request", () => {
  it("reaches a worker with its method, path, query and body, as they were sent", async () => {
    const workers = new FakeWorkers(1);
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      const body = method === "GET" ? {} : { body: `the body of ${method}` };
      const response = await workers.call(method, "/v1/a%20b/c%2Fd//e?x=%2F&y", body);
      expect([response.status, await response.text()]).toEqual([200, "hello"]);
      const asked = workers.asked.at(-1);
      expect(asked).toMatchObject({ method, url: `${workers.urls[0]}/v1/a%20b/c%2Fd//e?x=%2F&y` });
      expect(asked?.body).toBe(body.body ?? "");
    }
  });

  it("may ask for the root, with and without a slash, and for /ping", async () => {
    const workers = new FakeWorkers(1);
    for (const path of ["", "/", "?q=1"]) await workers.call("GET", path);
    expect(workers.asked.map(({ url }) => url.slice(workers.urls[0]?.length))).toEqual(["/", "/", "/?q=1"]);
    expect((await workers.call("GET", "/ping")).status).toBe(200);
  });

  it("brings neither the caller's credentials nor what belongs to its connection, and all else of its headers", async () => {
    const workers = new FakeWorkers(1);
    await workers.call("POST", "/", {
      body: "x",
      headers: {
        ...{
          Cookie: "session=1",
          "Proxy-Authorization": "Basic x",
          Origin: "https://app.example.com",
          Referer: "https://a",
        },
        ...{ "X-Forwarded-For": "10.0.0.1", "CF-Connecting-IP": "10.0.0.1", "Sec-Fetch-Mode": "cors", TE: "trailers" },
        ...{ Connection: "X-Named", "X-Named": "1" },
        ...{ "Content-Type": "text/x", Accept: "text/y", "X-Own": "z", "OpenAI-Beta": "v1", "Idempotency-Key": "k" },
      },
    });
    const { "content-length": length, ...seen } = Object.fromEntries(workers.asked[0]?.headers ?? []);
    expect(seen).toEqual({
      ...{ "content-type": "text/x", accept: "text/y", "x-own": "z", "openai-beta": "v1", "idempotency-key": "k" },
    });
  });

  it("is not sent out of its endpoint by any spelling of its path", async () => {
    const workers = new FakeWorkers(1);
    for (const path of [
      "//evil.example.com/x",
      "/..%2f..%2fx",
      "/%2e%2e%2fx",
      "/@evil.example.com",
      "/\\evil.example.com",
    ]) {
      await workers.call("GET", path);
    }
    for (const { url } of workers.asked) expect(new URL(url).origin).toBe(workers.urls[0]);
    const elsewhere = ["/../../v1/endpoints", "/%2e%2e/%2e%2e/v1/endpoints"];
    for (const path of elsewhere) {
      workers.asked.length = 0;
      await workers.call("GET", path);
      expect(workers.asked).toEqual([]);
    }
    const spelled = `/%70latform/lb/${workers.name}/x`;
    const headers = { Authorization: testSettings.PLATFORM_API_KEY };
    await expectRefusal(await call("GET", spelled, { headers, settings: workers.settings }), 404, "NOT_FOUND");
  });
});

describe("an answer", () => {
  it("comes with its status and body, and of its headers those that describe it and a worker's own", async () => {
    const headers = {
      ...{
        "Content-Type": "text/html",
        ETag: '"1"',
        "X-Own": "y",
        "Content-Disposition": "inline",
        "Retry-After": "3",
      },
      ...{ "Set-Cookie": "a=b", "Clear-Site-Data": '"*"', "Access-Control-Allow-Origin": "https://evil.example.com" },
      ...{
        "Content-Security-Policy": "script-src *",
        "Service-Worker-Allowed": "/",
        "Strict-Transport-Security": "max-age=0",
      },
      ...{ "Cache-Control": "public, max-age=600", "X-Request-Id": "forged", "X-Cost": "9", Link: "</x>; rel=preload" },
      ...{ Refresh: "0; url=/", "WWW-Authenticate": "Basic", "Alt-Svc": 'h3=":1"' },
    };
    const workers = new FakeWorkers(1, () => text("<script>1</script>", headers, 418));
    const response = await workers.call("GET", "/");
    expect([response.status, await response.text()]).toEqual([418, "<script>1</script>"]);
    const {
      "x-request-id": id,
      "server-timing": _,
      "x-runpod-worker-id": __,
      ...seen
    } = Object.fromEntries(response.headers);
    expect(id).not.toBe("forged");
    expect(seen).toEqual({
      ...{
        "content-type": "text/html",
        "content-length": "18",
        etag: '"1"',
        "x-own": "y",
        "content-disposition": "inline",
      },
      ...{ "retry-after": "3", "cache-control": "no-store", "content-security-policy": "sandbox" },
      ...{
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "strict-transport-security": "max-age=31536000",
      },
    });
  });

  it("may be empty, or a redirect: within the worker it leads to where the caller finds it", async () => {
    const workers = new FakeWorkers(1);
    workers.answer = () => new Response(null, { status: 204 });
    expect((await workers.call("DELETE", "/x")).status).toBe(204);
    const locations: [string, string | null][] = [
      ["/y?z=1", `/platform/lb/${workers.name}/y?z=1`],
      ["b", `/platform/lb/${workers.name}/a/b`],
      [`${workers.urls[0]}/y`, `/platform/lb/${workers.name}/y`],
      ["https://elsewhere.example.com/y", "https://elsewhere.example.com/y"],
      ["javascript:alert(1)", null],
    ];
    for (const [given, expected] of locations) {
      workers.answer = () => new Response(null, { status: 307, headers: { Location: given } });
      const response = await workers.call("POST", "/a/", { body: "x" });
      expect([response.status, response.headers.get("Location")]).toEqual([307, expected]);
    }
  });

  it("streams: each piece leaves as it comes", async () => {
    const source = flowing();
    const events = { "Content-Type": "text/event-stream" };
    const workers = new FakeWorkers(1, () => new Response(source.readable, { headers: events }));
    const response = await workers.call("GET", "/events");
    const reader = response.body?.getReader();
    for (const piece of ["data: 1\n\n", "data: 2\n\n"]) {
      const [, read] = await Promise.all([source.write(piece), reader?.read()]);
      expect(new TextDecoder().decode(read?.value)).toBe(piece);
    }
    const [, read] = await Promise.all([source.writer.close(), reader?.read()]);
    expect(read?.done).toBe(true);
  });
});

const limit = 30 * 1024 * 1024;
/** So many bytes, without a stated length. */
function bytes(count: number): ReadableStream {
  const piece = new Uint8Array(1024 * 1024);
  let left = count;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (left === 0) return controller.close();
      controller.enqueue(piece.slice(0, Math.min(left, piece.byteLength)));
      left -= Math.min(left, piece.byteLength);
    },
  });
}

describe("30 MB", () => {
  it("pass up, and one byte more does not, whether its length is stated or not", async () => {
    const workers = new FakeWorkers(1, async (asked) => text(String(asked.body.length)));
    for (const body of [new Uint8Array(limit), bytes(limit)]) {
      expect(await (await workers.call("POST", "/", { body })).text()).toBe(String(limit));
    }
    for (const body of [new Uint8Array(limit + 1), bytes(limit + 1)]) {
      await expectRefusal(await workers.call("POST", "/", { body }), 413, "PAYLOAD_TOO_LARGE");
    }
  });

  it("pass down; a longer answer is refused where it states its length, and else cut", async () => {
    const workers = new FakeWorkers(1, () => new Response(bytes(limit)));
    expect((await (await workers.call("GET", "/")).arrayBuffer()).byteLength).toBe(limit);
    workers.answer = () => text("", { "Content-Length": String(limit + 1) });
    await expectRefusal(await workers.call("GET", "/"), 502, "UPSTREAM_TOO_LARGE");
    workers.answer = () => new Response(bytes(limit + 1));
    const cut = await workers.call("GET", "/");
    await expect(cut.arrayBuffer()).rejects.toThrow();
  });
});

describe("the balancer", () => {
  const served = (workers: FakeWorkers) => workers.asked.map(({ url }) => workers.urls.indexOf(new URL(url).origin));

  it("asks each worker in turn, the one with the fewest requests in hand first", async () => {
    const workers = new FakeWorkers(3);
    for (let n = 0; n < 6; n++) await (await workers.call("GET", "/")).text();
    expect(served(workers)).toEqual([0, 1, 2, 0, 1, 2]);
    const held = flowing();
    workers.answer = () => new Response(held.readable);
    const long = await workers.call("GET", "/");
    workers.answer = () => text("short");
    for (let n = 0; n < 4; n++) await (await workers.call("GET", "/")).text();
    expect(served(workers).slice(6)).toEqual([0, 1, 2, 1, 2]);
    const [, said] = await Promise.all([held.writer.close(), long.text()]);
    expect(said).toBe("");
  });

  it("knows for 5 seconds who is healthy, and pings nobody while nobody calls", async () => {
    const workers = new FakeWorkers(2);
    for (let n = 0; n < 3; n++) await workers.call("GET", "/");
    expect(workers.pings).toHaveLength(2);
    pass(60_000);
    expect(workers.pings).toHaveLength(2);
    workers.health.set(String(workers.urls[0]), 500);
    for (let n = 0; n < 3; n++) await workers.call("GET", "/");
    expect(workers.pings).toHaveLength(4);
    expect(served(workers).slice(3)).toEqual([1, 1, 1]);
  });

  it("asks anew beside a request before that time is over, so that nobody waits who comes all the time", async () => {
    const workers = new FakeWorkers(1);
    await workers.call("GET", "/");
    pass(3_000);
    workers.health.delete(String(workers.urls[0]));
    expect((await workers.call("GET", "/")).status).toBe(200);
    await vi.waitUntil(() => workers.pings.length === 2);
  });

  it("sends nobody to a worker that is starting, failing or gone, and comes back to it with its next 200", async () => {
    const workers = new FakeWorkers(4);
    for (const [n, status] of [204, 503, 302].entries()) workers.health.set(String(workers.urls[n]), status);
    for (let n = 0; n < 3; n++) await workers.call("GET", "/");
    expect(served(workers)).toEqual([3, 3, 3]);
    workers.health.set(String(workers.urls[0]), 200);
    pass(6_000);
    await workers.call("GET", "/");
    expect(served(workers).at(-1)).toBe(0);
  });

  it("answers 502 where the worker breaks, without a second try, and sends the next caller elsewhere", async () => {
    const workers = new FakeWorkers(2, (asked) => {
      if (asked.url.startsWith(String(workers.urls[0]))) throw new TypeError("refused");
      return text("here");
    });
    await expectRefusal(await workers.call("POST", "/", { body: "x" }), 502, "UPSTREAM_UNREACHABLE");
    expect(served(workers)).toEqual([0]);
    for (let n = 0; n < 2; n++) expect(await (await workers.call("GET", "/")).text()).toBe("here");
  });

  it("keeps a caller with the worker that it names, as far as it is there", async () => {
    const workers = new FakeWorkers(2);
    const first = await workers.call("GET", "/");
    const id = first.headers.get("X-Runpod-Worker-Id") ?? "";
    expect(id).toMatch(/^[0-9a-f]{14}$/);
    const named = (value: string) => workers.call("GET", "/", { headers: { "X-Runpod-Worker-Id": value } });
    for (const value of [id, `strict ${id}`, `strict-resume ${id}`]) {
      expect((await named(value)).headers.get("X-Runpod-Worker-Id")).toBe(id);
    }
    expect(served(workers)).toEqual([0, 0, 0, 0]);
    for (const value of ["nobody", "", "not a worker's id"]) expect((await named(value)).status).toBe(200);
    await expectRefusal(await named("strict nobody"), 404, "WORKER_GONE", "affinity_worker_gone");
    workers.health.delete(String(workers.urls[0]));
    pass(6_000);
    expect((await named(id)).headers.get("X-Runpod-Worker-Id")).not.toBe(id);
  });
});

describe("attack", () => {
  it("bodies that break off take no worker away from the others", async () => {
    const workers = new FakeWorkers(2, async (_, request) => {
      await request.text();
      return text("here");
    });
    await (await workers.call("GET", "/")).text();
    for (let n = 0; n < 4; n++) {
      const body = new ReadableStream({ type: "bytes", pull: (controller) => controller.error(new Error("left")) });
      await workers.call("POST", "/", { body }).catch(() => {});
    }
    const pings = workers.pings.length;
    expect(await (await workers.call("GET", "/")).text()).toBe("here");
    expect(workers.pings).toHaveLength(pings);
  });

  it("a worker's id is no digest of its address that a caller could try out", async () => {
    const workers = new FakeWorkers(1);
    const id = (await workers.call("GET", "/")).headers.get("X-Runpod-Worker-Id");
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(workers.urls[0]));
    expect(id).not.toBe(new Uint8Array(digest, 0, 7).toHex());
  });

  it("no cache on the way keeps one caller's answer for another", async () => {
    const workers = new FakeWorkers(1);
    const sent = vi.mocked(globalThis.fetch);
    await workers.call("GET", "/private/1.png");
    expect(sent.mock.calls.map(([, init]) => init?.cache)).toEqual(["no-store", "no-store"]);
  });

  it("smuggles no header: what names a connection, a cookie or a key stays here, however it is spelled", async () => {
    const workers = new FakeWorkers(1);
    await workers.call("GET", "/", {
      headers: {
        ...{ Connection: "close, X-Hop", "X-Hop": "1", "Proxy-Connection": "x", TE: "trailers", Trailer: "X" },
        ...{ cOOKIE: "a=b", Cookie2: "c", "Proxy-Authorization": "Basic x", "X-Forwarded-Host": "evil.example.com" },
        ...{ Forwarded: "for=1.2.3.4", "CF-Connecting-IP": "1.2.3.4", "True-Client-IP": "1.2.3.4", Via: "1.1 x" },
        ...{ Host: "evil.example.com", "X-Own": "y" },
      },
    });
    expect(Object.fromEntries(workers.asked[0]?.headers ?? [])).toEqual({ "x-own": "y" });
  });
});

describe("what is refused", () => {
  it("is a call without the key, and one of another endpoint", async () => {
    const workers = new FakeWorkers(1);
    const path = `/platform/lb/${workers.name}/x`;
    const { settings } = workers;
    await expectRefusal(await call("GET", path, { settings }), 401, "UNAUTHORIZED");
    const headers = { Authorization: testSettings.PLATFORM_API_KEY };
    expect((await call("GET", path, { headers, settings })).status).toBe(200);
    await expectRefusal(await call("GET", "/platform/lb/unknown/x", { headers, settings }), 404, "ENDPOINT_NOT_FOUND");
    await expectRefusal(await call("GET", "/platform/lb/..%2fx/x", { headers, settings }), 404, "ENDPOINT_NOT_FOUND");
  });

  it("is a path of a queue's endpoint, and a queue's operation of a balanced one", async () => {
    const workers = new FakeWorkers(1);
    const headers = { Authorization: testSettings.PLATFORM_API_KEY };
    const settings = { ENDPOINTS: `${workers.settings.ENDPOINTS},queued` };
    const queued = await call("GET", "/platform/lb/queued/x", { headers, settings });
    await expectRefusal(queued, 400, "INVALID_REQUEST", "not allowed for QB API");
    const run = { headers, settings, body: '{"input":{}}' };
    const balanced = await call("POST", `/platform/v2/${workers.name}/run`, run);
    await expectRefusal(balanced, 400, "INVALID_REQUEST", "not allowed for LB API");
    expect((await call("POST", "/platform/v2/queued/run", run)).status).toBe(200);
  });

  it("is a WebSocket", async () => {
    const workers = new FakeWorkers(1);
    const headers = { Upgrade: "websocket", Connection: "Upgrade" };
    await expectRefusal(await workers.call("GET", "/", { headers }), 400, "INVALID_REQUEST");
    expect(workers.asked).toEqual([]);
  });
});
