// The operator's selfcheck: what it looks at, what each fault makes of it, and what it never says.
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isolate, refusalOf, send } from "../../support/callers.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { call } from "../../support/front-door.ts";
import { deployedSettings, testSettings } from "../../support/settings.ts";

afterEach(emptyStorage);

const serverKey = "key-of-the-real-service-0123456789abcdef";
const olderKey = "older-key-of-the-real-service-0123456789";
const remote = { UPSTREAM_URL: "https://jobs.example", UPSTREAM_API_KEY: serverKey };
const key = testSettings.ADMIN_TOKEN;
const path = "/admin/selfcheck";

interface Check {
  name: string;
  ok: boolean;
  ms: number;
  place?: string;
  problem?: string;
}
interface Selfcheck {
  ok: boolean;
  place?: string;
  upstream: string;
  uploads: boolean;
  allowedOrigins: string[];
  checks: Check[];
}

/** What the real service is asked, and answers. */
function realService(answer: (request: Request) => Response | Promise<Response>) {
  const seen: Request[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input as Request, init);
    seen.push(request);
    return answer(request);
  });
  return seen;
}

async function selfcheck(bindings: object = {}): Promise<Selfcheck> {
  const answer = await send({ ...isolate(), ...bindings } as Env, "GET", path, { key });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("Cache-Control")).toBe("no-store");
  return answer.json();
}
const faultsOf = ({ checks }: Selfcheck) => checks.filter(({ ok }) => !ok).map(({ name, problem }) => [name, problem]);

const objects = ["USER_METER", "BUDGET", "CONTROL", "JOB_MEDIA", "SHARED_REQUEST"];

describe("the selfcheck", () => {
  it("writes and reads each binding, with its milliseconds, and leaves nothing in KV and the bucket", async () => {
    const found = await selfcheck();
    expect(faultsOf(found)).toEqual([]);
    expect(found).toMatchObject({ ok: true, upstream: "embedded", uploads: true, allowedOrigins: ["*"] });
    const platform = ["ENDPOINT_QUEUE", "ACCOUNT"];
    expect(found.checks.map(({ name }) => name)).toEqual([
      ...["IMAGES", "MEDIA", "FLOOD"],
      ...objects,
      ...platform,
      "upstream",
    ]);
    for (const { ms } of found.checks) expect(ms).toBeGreaterThanOrEqual(0);
    expect((await env.IMAGES.list({ prefix: "selfcheck" })).keys).toEqual([]);
    expect((await env.MEDIA.list({ prefix: "selfcheck" })).objects).toEqual([]);
  });

  it("says where it was answered", async () => {
    const answer = await call("GET", path, { headers: { Authorization: `Bearer ${key}` } });
    expect(await answer.json()).toMatchObject({ place: "TEST" });
  });

  it("is for the operator alone", async () => {
    for (const wrong of [undefined, `${key}x`, testSettings.APP_SECRET]) {
      const answer = await send(isolate(), "GET", path, wrong === undefined ? {} : { key: wrong });
      expect(await refusalOf(answer)).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
    }
  });

  it("says in a binding's own words that a day's limit is reached", async () => {
    const spent = () => Promise.reject(new Error("KV put() limit exceeded for the day."));
    const kv = { put: spent, get: async () => null, delete: spent };
    expect(faultsOf(await selfcheck({ IMAGES: kv }))).toEqual([["IMAGES", "KV put() limit exceeded for the day."]]);
  });

  it("names what is away, and checks the rest", async () => {
    const away = () => Promise.reject(new Error(`not reached with ${testSettings.SIGNING_SECRET}`));
    const kv = { ...env.IMAGES, put: away, get: async () => null, delete: away };
    expect(faultsOf(await selfcheck({ IMAGES: kv }))).toEqual([["IMAGES", "Error"]]);
    const bucket = { put: async () => null, get: async () => null, delete: async () => {} };
    expect(faultsOf(await selfcheck({ MEDIA: bucket }))).toEqual([["MEDIA", "what was read is not what was written"]]);
    const shield = { limit: async () => ({ success: false }) };
    expect(faultsOf(await selfcheck({ FLOOD: shield }))).toEqual([["FLOOD", "lets nobody through"]]);
    const meters = { getByName: () => ({ selfcheck: away }) };
    expect(faultsOf(await selfcheck({ USER_METER: meters }))).toEqual([["USER_METER", "Error"]]);
  });

  it("says no part of a secret that stands where long words are cut short", async () => {
    const long = () => Promise.reject(new Error(`${"x".repeat(180)} ${testSettings.SIGNING_SECRET}`));
    expect(faultsOf(await selfcheck({ FLOOD: { limit: long } }))).toEqual([["FLOOD", "Error"]]);
    const plain = () => Promise.reject(new Error("x".repeat(300)));
    expect(faultsOf(await selfcheck({ FLOOD: { limit: plain } }))).toEqual([["FLOOD", "x".repeat(200)]]);
  });

  it("is ended by what hangs within seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const never = () => new Promise<never>(() => {});
      const waiting = selfcheck({ FLOOD: { limit: never } });
      for (let second = 0; second < 10; second++) {
        await new Promise((resolve) => setImmediate(resolve));
        await vi.advanceTimersByTimeAsync(1000);
      }
      expect(faultsOf(await waiting)).toEqual([["FLOOD", "took too long"]]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("does without a bucket where there is none", async () => {
    const found = await selfcheck({ MEDIA: undefined });
    expect(found).toMatchObject({ ok: true, uploads: false });
    expect(found.checks.map(({ name }) => name)).not.toContain("MEDIA");
  });
});

describe("the selfcheck before a real service", () => {
  it("asks with each key, newest first, and leaves the platform's objects alone", async () => {
    const seen = realService(() => Response.json({ jobs: {}, workers: {} }));
    const found = await selfcheck({ ...remote, UPSTREAM_API_KEY: `${serverKey},${olderKey}` });
    expect(found).toMatchObject({ ok: true, upstream: "https://jobs.example" });
    const names = ["IMAGES", "MEDIA", "FLOOD", ...objects, "upstream", "upstream, older key 1"];
    expect(found.checks.map(({ name }) => name)).toEqual(names);
    expect(seen.map(({ headers }) => headers.get("Authorization"))).toEqual(
      [serverKey, olderKey].map((k) => `Bearer ${k}`),
    );
    for (const { url, method } of seen) {
      expect([method, url]).toEqual(["GET", expect.stringMatching(/^https:\/\/jobs\.example\/v2\/[\w-]+\/health$/)]);
    }
  });

  it.each([
    [401, "refused our key"],
    [403, "refused our key"],
    [402, "wants to be paid"],
    [404, "answered 404"],
    [500, "answered 500"],
    [302, "answered 302"],
  ])("says what %i means", async (status, problem) => {
    realService(() => new Response(`{"error":"${serverKey}"}`, { status }));
    const errors = vi.spyOn(console, "error").mockReturnValue();
    const found = await selfcheck(remote);
    expect(faultsOf(found)).toEqual([["upstream", problem]]);
    const isRefusal = [401, 402, 403].includes(status);
    const told = JSON.stringify({ upstream: problem, status, setting: "UPSTREAM_API_KEY" });
    expect(errors.mock.calls.map(([line]) => line)).toEqual(isRefusal ? [told] : []);
  });

  it("says that nobody is there, and never a secret", async () => {
    realService(() => Promise.reject(new TypeError(`Network connection lost: ${serverKey}`)));
    const answer = await send({ ...isolate(), ...remote } as Env, "GET", path, { key });
    const text = await answer.text();
    expect(faultsOf(JSON.parse(text))).toEqual([["upstream", "The model service could not be reached."]]);
    const { SIGNING_SECRET, APP_SECRET, PLATFORM_API_KEY } = testSettings;
    for (const secret of [serverKey, key, SIGNING_SECRET, APP_SECRET, PLATFORM_API_KEY])
      expect(text).not.toContain(secret);
  });

  it("asks each object of a deployment for its place", async () => {
    const seen = realService(() => new Response("fl=1\ncolo=FRA\nh=cloudflare.com\n"));
    const settings = deployedSettings;
    const answer = await call("GET", path, { headers: { Authorization: `Bearer ${key}` }, settings });
    const { checks } = await answer.json<Selfcheck>();
    expect(checks.filter(({ place }) => place === "FRA").map(({ name }) => name)).toEqual([
      ...objects,
      "ENDPOINT_QUEUE",
      "ACCOUNT",
    ]);
    expect(new Set(seen.map(({ url }) => url))).toEqual(new Set(["https://cloudflare.com/cdn-cgi/trace"]));
  });
});
