// Load-balancing endpoints for app users: opened by the operator, called with the server's key, counted and paid like any other.
import { afterEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../../src/contract/limits.ts";
import { FakeWorkers, flowing, text } from "../../platform/fake-workers.ts";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { upstreamKey } from "../../support/canary.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, mintToken, watchCanary } from "../jobs/fake-upstream.ts";

watchCanary();
afterEach(() => vi.restoreAllMocks());

const worker = { "X-Runpod-Worker-Id": "w1" };
const open = (within: Env, name: string, body: object = { passthrough: true, maxUsd: 0.02 }) =>
  send(within, "PUT", `/admin/models/${name}`, { key: testSettings.ADMIN_TOKEN, body });

async function upstreamWith(answer: ConstructorParameters<typeof FakeUpstream>[0] = () => text("made", worker)) {
  const upstream = new FakeUpstream(answer);
  expect((await open(upstream.env, "painter")).status).toBe(200);
  return upstream;
}

describe("in front of a real service", () => {
  it("calls the endpoint's own host with the server's key, and not with the caller's", async () => {
    const upstream = await upstreamWith();
    const headers = { Cookie: "a=b", "X-Own": "y", "Content-Type": "text/x", "X-Runpod-Worker-Id": "strict w1" };
    const response = await upstream.call("POST", "/lb/painter/v1/a%20b//c?x=1", { body: "the body", headers });
    expect([response.status, await response.text()]).toEqual([200, "made"]);
    const [seen] = upstream.seen;
    expect(seen?.url).toBe(`${upstream.origin.replace("https://", "https://painter.")}/v1/a%20b//c?x=1`);
    expect([seen?.method, seen?.body]).toEqual(["POST", "the body"]);
    const { "content-length": _, ...sent } = Object.fromEntries(seen?.headers ?? []);
    expect(sent).toEqual({
      ...{ authorization: `Bearer ${upstreamKey}`, "content-type": "text/x", "x-own": "y" },
      "x-runpod-worker-id": "strict w1",
    });
  });

  it("answers without cookies, in a sandbox, and says what it cost and what is left", async () => {
    const headers = {
      ...worker,
      "Set-Cookie": "a=b",
      "Content-Security-Policy": "script-src *",
      "X-Own": "y",
      "X-Cost": "9",
    };
    const upstream = await upstreamWith(() => text("<html>", { ...headers, "Content-Type": "text/html" }));
    const response = await upstream.call("GET", "/lb/painter/");
    expect(Object.fromEntries(response.headers)).toMatchObject({
      ...{ "content-security-policy": "sandbox", "x-content-type-options": "nosniff", "cache-control": "no-store" },
      ...{ "content-type": "text/html", "x-own": "y", "x-runpod-worker-id": "w1", "x-cost": "0.02" },
    });
    expect(response.headers.has("Set-Cookie")).toBe(false);
  });

  it("leaves out what a worker says in bytes that a header has no plain text for", async () => {
    const headers = { ...worker, "X-Name": "caf\u00e9", "Content-Disposition": 'filename="\ufffd"', "X-Own": "y" };
    const upstream = await upstreamWith(() => text("made", headers));
    const answer = await upstream.call("GET", "/lb/painter/x");
    expect(Object.fromEntries(answer.headers)).toMatchObject({ "x-own": "y" });
    expect(["x-name", "content-disposition"].filter((name) => answer.headers.has(name))).toEqual([]);
  });

  it("passes a worker's own refusals on, and keeps its own", async () => {
    const upstream = await upstreamWith();
    for (const status of [400, 401, 403, 404, 500, 502, 524]) {
      upstream.answer = () => json({ error: "no workers available" }, status, worker);
      const response = await upstream.call("GET", "/lb/painter/x");
      expect([response.status, await response.json()]).toEqual([status, { error: "no workers available" }]);
    }
    const own: [number, string, string, number][] = [
      [401, "invalid api key", "UPSTREAM_REFUSED", 502],
      [402, "no credits", "UPSTREAM_REFUSED", 502],
      [400, "no workers available", "NO_WORKERS", 400],
      [400, "worker_timeout", "WORKER_BUSY", 400],
      [404, "affinity_worker_gone", "WORKER_GONE", 404],
      [404, "endpoint not found", "MODEL_NOT_FOUND", 404],
      [524, "", "WORKER_TOO_SLOW", 524],
    ];
    for (const [status, error, code, answered] of own) {
      upstream.answer = () => json({ error }, status);
      expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({ status: answered, code });
    }
    upstream.answer = () => json({ error: "of an older balancer's worker" }, 422);
    const older = await upstream.call("GET", "/lb/painter/x");
    expect([older.status, await older.json()]).toEqual([422, { error: "of an older balancer's worker" }]);
  });

  it("lets no answer say the server's key: not in a header, not whole, not in pieces", async () => {
    const upstream = await upstreamWith(() => text("", { ...worker, "X-Echo": `Bearer ${upstreamKey}` }));
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({ code: "UPSTREAM_BAD_ANSWER" });
    upstream.answer = () => text(`{"authorization":"Bearer ${upstreamKey}"}`, worker);
    expect(await (await upstream.call("GET", "/lb/painter/x")).text()).not.toContain(upstreamKey.slice(8));
    const telling = `{"authorization":"Bearer ${upstreamKey}"}`;
    upstream.answer = () => text(telling, { ...worker, "Content-Length": String(telling.length) });
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({ code: "UPSTREAM_BAD_ANSWER" });
    upstream.answer = () => {
      const source = flowing();
      const half = upstreamKey.length / 2;
      const pieces = [upstreamKey.slice(0, half), upstreamKey.slice(half)];
      void pieces
        .reduce((written, piece) => written.then(() => source.write(piece)), Promise.resolve())
        .catch(() => {});
      return new Response(source.readable, { headers: worker });
    };
    expect(await (await upstream.call("GET", "/lb/painter/x")).text()).toMatch(/^cut: |^$/);
  });

  it("has no address for a name that is no label of a host, nor under a host that is a number", async () => {
    const upstream = await upstreamWith();
    await open(upstream.env, "Pain_ter");
    expect(await refusalOf(await upstream.call("GET", "/lb/Pain_ter/x"))).toMatchObject({ code: "MODEL_NOT_FOUND" });
    const numbered = isolate({ UPSTREAM_URL: "http://127.0.0.1:9", UPSTREAM_API_KEY: upstreamKey });
    const answer = await send(numbered, "GET", "/lb/painter/x", { key: await upstream.token() });
    expect(await refusalOf(answer)).toMatchObject({ code: "MODEL_NOT_FOUND" });
    expect(upstream.seen).toEqual([]);
  });
});

describe("who may call", () => {
  it("is who the operator opened the endpoint to, while it is switched on", async () => {
    const upstream = new FakeUpstream(() => text("made", worker));
    expect(await refusalOf(await upstream.call("GET", "/lb/closed/x"))).toMatchObject({
      status: 404,
      code: "MODEL_NOT_FOUND",
    });
    await open(upstream.env, "closed", { passthrough: true, maxUsd: 0, enabled: false });
    const within = { ...upstream.env };
    const key = await upstream.token();
    expect(await refusalOf(await send(within, "GET", "/lb/closed/x", { key }))).toMatchObject({
      code: "MODEL_DISABLED",
    });
    const model = "black-forest-labs-flux-1-schnell";
    expect(await refusalOf(await upstream.call("GET", `/lb/${model}/x`))).toMatchObject({
      status: 400,
      code: "INVALID_REQUEST",
    });
    expect(upstream.seen).toEqual([]);
  });

  it("is no token that is for other operations or models, and nobody without one", async () => {
    const upstream = await upstreamWith();
    const ask = async (key: string) => refusalOf(await upstream.call("GET", "/lb/painter/x", { key }));
    expect(await ask("")).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
    const scoped = (more: object) => mintToken(upstream.env, { user: "ada", plan: "unlimited", ...more });
    expect(await ask(await scoped({ operations: ["run"] }))).toMatchObject({
      status: 403,
      code: "OPERATION_FORBIDDEN",
    });
    expect(await ask(await scoped({ models: ["sora-2-i2v"] }))).toMatchObject({ status: 403, code: "MODEL_FORBIDDEN" });
    const fits = await scoped({ operations: ["lb"], models: ["painter"] });
    expect((await upstream.call("GET", "/lb/painter/x", { key: fits })).status).toBe(200);
  });
});

describe("an answer that states its length", () => {
  it("is passed on with it, small or large, and so is what a HEAD is told", async () => {
    const upstream = await upstreamWith();
    const key = await upstream.token();
    for (const length of [0, 5, 16 * 1024]) {
      upstream.answer = () => text("x".repeat(length), { ...worker, "Content-Length": String(length) });
      const answer = await upstream.call("GET", "/lb/painter/x", { key });
      expect([answer.status, (await answer.text()).length]).toEqual([200, length]);
    }
    upstream.answer = () => new Response(null, { headers: { ...worker, "Content-Length": "500" } });
    const head = await upstream.call("HEAD", "/lb/painter/x", { key });
    expect([head.status, head.headers.get("Content-Length")]).toEqual([200, "500"]);
  });

  it("is refused where it broke off, as long as nothing of it has left", async () => {
    const upstream = await upstreamWith(() => text("short", { ...worker, "Content-Length": "6" }));
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({
      status: 502,
      code: "UPSTREAM_UNREACHABLE",
    });
  });

  it("is passed on whole where it was packed", async () => {
    // As the runtime gives it: unpacked, with the length that it had.
    const headers = { ...worker, "Content-Encoding": "gzip", "Content-Length": "29" };
    const upstream = await upstreamWith(() => text("x".repeat(1000), headers));
    expect(await (await upstream.call("GET", "/lb/painter/x")).text()).toBe("x".repeat(1000));
  });
});

describe("a call is counted", () => {
  const ruled = async (upstream: FakeUpstream, rules: object[]) =>
    mintToken(upstream.env, { user: `ruled-${upstream.origin}`, plan: "unlimited", rules });

  it("as a request, and refused beyond the limit", async () => {
    const upstream = await upstreamWith();
    const key = await ruled(upstream, [{ unit: "requests", limit: 2, per: "day" }]);
    const ask = () => upstream.call("GET", "/lb/painter/x", { key });
    expect((await ask()).headers.get("RateLimit")).toMatch(/r=1/);
    expect((await ask()).status).toBe(200);
    expect(await refusalOf(await ask())).toMatchObject({ status: 429, code: "RATE_LIMITED" });
    expect(upstream.seen).toHaveLength(2);
  });

  it("as a job until its answer has left", async () => {
    const source = flowing();
    const upstream = await upstreamWith(() => new Response(source.readable, { headers: worker }));
    const key = await ruled(upstream, [{ unit: "jobs", limit: 1 }]);
    const long = upstream.call("GET", "/lb/painter/x", { key });
    await vi.waitUntil(() => upstream.seen.length === 1);
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x", { key }))).toMatchObject({
      code: "TOO_MANY_JOBS",
    });
    await source.writer.close();
    await long;
    upstream.answer = () => text("made", worker);
    expect((await upstream.call("GET", "/lb/painter/x", { key })).status).toBe(200);
  });

  it("by its price where it was served, and by nothing where it was refused or failed", async () => {
    const upstream = await upstreamWith();
    const costs = async () => (await upstream.jobs()).map(({ model, costUsd }) => [model, costUsd]);
    await upstream.call("GET", "/lb/painter/x");
    expect(await costs()).toEqual([["painter", 0.02]]);
    upstream.answer = () => text("no", worker, 500);
    expect((await upstream.call("GET", "/lb/painter/x")).headers.has("X-Cost")).toBe(false);
    expect((await costs())[0]).toEqual(["painter", 0]);
    upstream.answer = () => json({ error: "no workers available" }, 400);
    await upstream.call("GET", "/lb/painter/x");
    const total = (await costs()).reduce((sum, [, cost]) => sum + Number(cost), 0);
    expect(total).toBe(0.02);
  });

  it("by its price where the worker's answer is refused or lost on its way, and not where it was a failure", async () => {
    const upstream = await upstreamWith();
    const tooLarge = { ...worker, "Content-Length": String(31 * 1024 * 1024) };
    const spent = async () => {
      const usage = await upstream.call("GET", "/usage");
      const { jobs } = await usage.json<{ jobs: { costUsd: number | null; reservedUsd: number }[] }>();
      return jobs.map(({ costUsd }) => costUsd);
    };
    const lost: [headers: Record<string, string>, code: string][] = [
      [tooLarge, "UPSTREAM_TOO_LARGE"],
      [{ ...worker, "Content-Encoding": "zstd" }, "UPSTREAM_BAD_ANSWER"],
      [{ ...worker, "Content-Length": "9" }, "UPSTREAM_UNREACHABLE"],
    ];
    for (const [index, [headers, code]] of lost.entries()) {
      upstream.answer = () => text("made", headers);
      expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({ code });
      expect(await spent()).toEqual(Array.from({ length: index + 1 }, () => 0.02));
    }
    upstream.answer = () => text("no", tooLarge, 500);
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({ code: "UPSTREAM_TOO_LARGE" });
    expect(await spent()).toHaveLength(3);
  });

  it("with nothing where the time for it ran out, as the balancer's own 524", async () => {
    const upstream = await upstreamWith();
    const late = vi.spyOn(globalThis, "setTimeout");
    upstream.answer = async (_, request) => {
      const cut = new Promise((_, reject) => {
        request.signal.addEventListener("abort", () => reject(new Error("cut")));
      });
      const [runOut] =
        late.mock.calls.find(([, ms]) => ms === limits.balanced.strictMs + limits.balanced.requestMs) ?? [];
      (runOut as () => void)();
      await cut;
      return text("");
    };
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x"))).toMatchObject({ code: "WORKER_TOO_SLOW" });
    expect(await upstream.jobs()).toEqual([]);
  });

  it("and refused where the money does not reach", async () => {
    const upstream = await upstreamWith();
    const key = await mintToken(upstream.env, { user: "poor", plan: "unlimited", maxCostUsd: 0.03 });
    expect((await upstream.call("GET", "/lb/painter/x", { key })).status).toBe(200);
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x", { key }))).toMatchObject({
      code: "QUOTA_EXCEEDED",
    });
  });

  it("by its price too where its caller left before the answer", async () => {
    const upstream = await upstreamWith();
    const leaving = new AbortController();
    upstream.answer = async (_, request) => {
      const left = new Promise((_, reject) => {
        request.signal.addEventListener("abort", () => reject(new Error("left")));
      });
      leaving.abort();
      await left;
      return text("");
    };
    await upstream.call("GET", "/lb/painter/x", { signal: leaving.signal }).catch(() => {});
    expect((await upstream.jobs())[0]).toMatchObject({ costUsd: 0.02 });
  });
});

describe("attack", () => {
  it("an answer that is asked for in pieces, or wrapped, does not carry the server's key past the search", async () => {
    const upstream = await upstreamWith();
    const headers = { Range: "bytes=0-9", "If-Range": '"1"', "Accept-Encoding": "deflate, zstd" };
    await upstream.call("GET", "/lb/painter/echo", { headers });
    const [seen] = upstream.seen;
    expect(["range", "if-range", "accept-encoding"].filter((name) => seen?.headers.has(name))).toEqual([]);
    for (const encoding of ["zstd", "GZIP", "Br", "gzip, gzip"]) {
      upstream.answer = () => text("wrapped", { ...worker, "Content-Encoding": encoding });
      expect(await refusalOf(await upstream.call("GET", "/lb/painter/echo")), encoding).toMatchObject({
        code: "UPSTREAM_BAD_ANSWER",
      });
    }
  });

  it("a status line does not carry the server's key", async () => {
    const said = "made\n".repeat(4000);
    const bodies = [null, said];
    for (const body of bodies) {
      const upstream = await upstreamWith(
        () => new Response(body, { status: 404, statusText: upstreamKey, headers: worker }),
      );
      const answer = await upstream.call("GET", "/lb/painter/x");
      expect([answer.status, answer.statusText, await answer.text()]).toEqual([404, "Not Found", body ?? ""]);
    }
  });

  it.each([
    ["that says no length", {}],
    ["that says its length", { "Content-Length": "1000000" }],
  ])("nothing where its caller left in the middle of a request %s", async (_, headers) => {
    const upstream = await upstreamWith(async (_, request) => {
      await request.text();
      return text("made", worker);
    });
    const leaving = new AbortController();
    let sent = 0;
    const body = new ReadableStream({
      type: "bytes",
      pull(controller) {
        if (sent++ < 3) return controller.enqueue(new Uint8Array(1024));
        leaving.abort();
        controller.error(new Error("left"));
      },
    });
    await upstream.call("POST", "/lb/painter/x", { body, headers, signal: leaving.signal }).catch(() => {});
    await vi.waitFor(async () => expect(await upstream.jobs()).toEqual([]));
  });

  it("nothing where its caller left while a refusal of the balancer's was read", async () => {
    const leaving = new AbortController();
    const upstream = await upstreamWith(() => {
      const body = new ReadableStream({
        type: "bytes",
        pull(controller) {
          leaving.abort();
          controller.error(new Error("cut"));
        },
      });
      return new Response(body, { status: 400, headers: { "Content-Type": "application/json" } });
    });
    await upstream.call("GET", "/lb/painter/x", { signal: leaving.signal }).catch(() => {});
    await vi.waitFor(async () => {
      for (const { reservedUsd, costUsd } of await upstream.jobs())
        expect([reservedUsd, costUsd]).toEqual([0.02, null]);
    });
  });

  it("bodies that are too large, or break off, hold no place and no money, and are counted as requests", async () => {
    const upstream = await upstreamWith(async (_, request) => {
      await request.text();
      return text("made", worker);
    });
    const rules = [
      { unit: "jobs", limit: 1 },
      { unit: "requests", limit: 3, per: "day" },
    ];
    const key = await mintToken(upstream.env, { user: `broken-${upstream.origin}`, plan: "unlimited", rules });
    const piece = new Uint8Array(1024 * 1024);
    let left = 31;
    const large = new ReadableStream({
      type: "bytes",
      pull: (controller) => (left-- > 0 ? controller.enqueue(piece.slice()) : controller.close()),
    });
    const tooLarge = await upstream.call("POST", "/lb/painter/x", { key, body: large });
    expect(await refusalOf(tooLarge)).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    const broken = new ReadableStream({ type: "bytes", pull: (controller) => controller.error(new Error("left")) });
    expect((await upstream.call("POST", "/lb/painter/x", { key, body: broken })).status).toBe(502);
    expect((await upstream.call("GET", "/lb/painter/x", { key })).status).toBe(200);
    expect(await refusalOf(await upstream.call("GET", "/lb/painter/x", { key }))).toMatchObject({
      code: "RATE_LIMITED",
    });
  });

  it("a worker that reads no more of a body, and answers on, is not cut off", async () => {
    const upstream = await upstreamWith();
    vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init) => {
      const { readable, writer, write } = flowing();
      init?.signal?.addEventListener("abort", () => void writer.abort("cut").catch(() => {}));
      await (init?.body as ReadableStream | undefined)?.cancel("enough");
      const answering = scheduler.wait(50).then(() => write("made"));
      void answering.then(() => writer.close()).catch(() => {});
      return new Response(readable, { headers: worker });
    });
    const endless = new ReadableStream({
      type: "bytes",
      pull: (controller) => scheduler.wait(5).then(() => controller.enqueue(new Uint8Array(1024))),
    });
    const answer = await upstream.call("POST", "/lb/painter/x", { body: endless });
    expect([answer.status, await answer.text()]).toEqual([200, "made"]);
  });

  it("paths that lead out of the endpoint, in any spelling, reach no other host and no other path of it", async () => {
    const upstream = await upstreamWith();
    const paths = [
      "/../../v2/x",
      "/%2e%2e/%2E%2e/admin",
      "/..%2f..%2fadmin",
      "//evil.example.com/x",
      "/\\evil/x",
      "/@evil",
    ];
    for (const path of [...paths, "/;@evil.example.com/", "/x?url=//evil", "/%00", "/x%0d%0aHost:%20evil"]) {
      await upstream.call("GET", `/lb/painter${path}`);
    }
    const host = new URL(upstream.origin.replace("https://", "https://painter.")).host;
    expect(upstream.seen.map(({ url }) => new URL(url).host).filter((asked) => asked !== host)).toEqual([]);
    for (const name of ["..", "%2e%2e", "painter%2f..", "a.b", "painter%00", "painter:80", "painter@evil"]) {
      const count = upstream.seen.length;
      const refused = await upstream.call("GET", `/lb/${name}/x`);
      expect([refused.status >= 400, upstream.seen.length]).toEqual([true, count]);
    }
  });
});

describe("in front of the embedded platform", () => {
  async function embedded(answer?: ConstructorParameters<typeof FakeWorkers>[1]) {
    const workers = new FakeWorkers(2, answer);
    await open(workers.env, workers.name);
    const key = await mintToken(workers.env, { user: `u-${workers.name}`, plan: "unlimited" });
    const ask = (method: string, path: string, more: object = {}) =>
      send(workers.env, method, `/lb/${workers.name}${path}`, { key, ...more });
    return { workers, ask };
  }

  it("reaches a worker without any key, and is answered by it", async () => {
    const { workers, ask } = await embedded();
    const response = await ask("POST", "/v1/x?y=1", { body: "the body", headers: { Cookie: "a=b" } });
    expect([response.status, await response.text()]).toEqual([200, "hello"]);
    expect(response.headers.get("X-Runpod-Worker-Id")).toMatch(/^[0-9a-f]{14}$/);
    const [asked] = workers.asked;
    expect(asked).toMatchObject({ method: "POST", url: `${workers.urls[0]}/v1/x?y=1`, body: "the body" });
    expect([asked?.headers.has("Authorization"), asked?.headers.has("Cookie")]).toEqual([false, false]);
  });

  it("keeps within its endpoint, whatever the path says", async () => {
    const { workers, ask } = await embedded();
    for (const path of [
      "/../../platform/v1/endpoints",
      "/%2e%2e/%2e%2e/v1/endpoints",
      "/..%2f..%2f..%2fv1/endpoints",
      "//v1//endpoints",
    ]) {
      const response = await ask("GET", path);
      if (response.status === 200) expect(await response.text()).toBe("hello");
    }
    for (const { url } of workers.asked) expect(workers.urls).toContain(new URL(url).origin);
  });

  it("sends a redirect to where the caller finds it", async () => {
    const { workers, ask } = await embedded(
      () => new Response(null, { status: 303, headers: { Location: "/done?x=1" } }),
    );
    expect((await ask("POST", "/start", { body: "x" })).headers.get("Location")).toBe(`/lb/${workers.name}/done?x=1`);
  });

  it("refuses as the platform does, in the one shape", async () => {
    const { workers, ask } = await embedded();
    const headers = { "X-Runpod-Worker-Id": "strict nobody" };
    expect(await refusalOf(await ask("GET", "/x", { headers }))).toEqual({
      status: 404,
      code: "WORKER_GONE",
      detail: "affinity_worker_gone",
    });
    await open(workers.env, "absent");
    const key = await mintToken(workers.env, { user: "ada" });
    expect(await refusalOf(await send(workers.env, "GET", "/lb/absent/x", { key }))).toMatchObject({
      status: 404,
      code: "MODEL_NOT_FOUND",
    });
    workers.answer = () => {
      throw new TypeError("gone");
    };
    expect(await refusalOf(await ask("GET", "/x"))).toMatchObject({ status: 502, code: "UPSTREAM_UNREACHABLE" });
  });
});
