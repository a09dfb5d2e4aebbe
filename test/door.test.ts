// What stands in front of every route: request id, CORS, security headers, the log line, the misconfigured deploy.
import { createExecutionContext } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { app } from "../src/app.ts";
import { describeFault } from "../src/door.ts";
import { amount } from "./support/amount.ts";
import { isolate } from "./support/callers.ts";
import { call, origin, type Settings } from "./support/front-door.ts";
import { watchLog } from "./support/log-lines.ts";
import { expectProblem, readProblem } from "./support/problems.ts";
import { deployedSettings } from "./support/settings.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("every answer", () => {
  it("has a request id of its own, whatever the client sends as one", async () => {
    const headers = { "X-Request-Id": "mine" };
    const [first, second] = [await call("GET", "/healthz", { headers }), await call("GET", "/healthz", { headers })];
    expect(first.headers.get("X-Request-Id")).toMatch(uuid);
    expect(second.headers.get("X-Request-Id")).toMatch(uuid);
    expect(first.headers.get("X-Request-Id")).not.toBe(second.headers.get("X-Request-Id"));
  });

  it.each([
    ["GET", "/healthz", {}],
    ["GET", "/nowhere", {}],
    ["POST", "/healthz", {}],
    ["OPTIONS", "/healthz", {}],
    ["GET", "/healthz", { ADMIN_TOKEN: "" }],
  ])("is safe to hand to a browser: %s %s %o", async (method, path, settings: Settings) => {
    const { headers } = await call(method, path, { settings });
    expect(headers.get("X-Request-Id")).toMatch(uuid);
    expect(headers.get("Server-Timing")).toMatch(/^total;dur=\d+$/);
    expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(headers.get("Referrer-Policy")).toBe("no-referrer");
    expect(headers.get("Content-Security-Policy")).toBe("default-src 'none'; frame-ancestors 'none'");
    expect(headers.get("Strict-Transport-Security")).toMatch(/^max-age=\d+/);
  });

  it("asks for https only where it is served by https", async () => {
    const env = isolate(deployedSettings);
    const response = await app.fetch(new Request("http://localhost:8787/healthz"), env, createExecutionContext());
    expect(response.status).toBe(200);
    expect(response.headers.has("Strict-Transport-Security")).toBe(false);
  });
});

describe("/healthz", () => {
  it("says that it serves", async () => {
    const response = await call("GET", "/healthz");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: "ok" });
  });

  it("answers HEAD with the headers alone", async () => {
    const response = await call("HEAD", "/healthz");
    expect(response.status).toBe(200);
    expect(response.headers.get("Content-Type")).toBe("application/json");
    expect(await response.text()).toBe("");
  });
});

describe("pages of other origins", () => {
  const listed = "https://app.example.com,https://*.example.org,https://*.example.net:8443,http://localhost:5173";
  it.each([
    ["https://app.example.com", true],
    ["https://app.example.com.evil.com", false],
    ["https://evil-app.example.com", false],
    ["https://sub.app.example.com", false],
    ["https://example.com", false],
    ["http://app.example.com", false],
    ["https://app.example.com:8443", false],
    ["https://app.example.com@evil.com", false],
    ["https://a.example.org", true],
    ["https://a.b.example.org", true],
    ["https://example.org", false],
    ["https://evil-example.org", false],
    ["https://example.org.evil.com", false],
    ["https://evil.com/.example.org", false],
    ["https://evil.com#.example.org", false],
    ["https://evil.com?.example.org", false],
    ["https://me@a.example.org", false],
    ["https://.example.org", false],
    ["https://a..example.org", false],
    ["http://a.example.org", false],
    ["http://abc.example.org", false],
    ["https://a.example.org:8443", false],
    ["https://a.example.net:8443", true],
    ["https://a.example.net", false],
    ["http://localhost:5173", true],
    ["http://localhost:5174", false],
    ["http://localhost", false],
    ["null", false],
  ])("%s may call: %s", async (page, allowed) => {
    const settings = { ...deployedSettings, ALLOWED_ORIGINS: listed };
    for (const path of ["/healthz", "/nowhere"]) {
      const { headers } = await call("GET", path, { settings, headers: { Origin: page } });
      expect(headers.get("Access-Control-Allow-Origin")).toBe(allowed ? page : null);
      expect(headers.has("Access-Control-Expose-Headers")).toBe(allowed);
      expect(headers.get("Vary")).toBe("Origin");
    }
    const preflight = await call("OPTIONS", "/healthz", { settings, headers: preflightOf(page) });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("Access-Control-Allow-Origin")).toBe(allowed ? page : null);
    expect(preflight.headers.has("Access-Control-Allow-Methods")).toBe(allowed);
    expect(preflight.headers.has("Access-Control-Allow-Headers")).toBe(allowed);
    expect(preflight.headers.get("Vary")).toBe("Origin");
  });

  it("may all call where the setting says *, and none is told apart", async () => {
    for (const page of ["https://any.example", "null"]) {
      const { headers } = await call("GET", "/healthz", { headers: { Origin: page } });
      expect(headers.get("Access-Control-Allow-Origin")).toBe("*");
      expect(headers.has("Vary")).toBe(false);
    }
  });

  it("may not call a fresh deployment", async () => {
    const settings = deployedSettings;
    const { headers } = await call("GET", "/healthz", { settings, headers: { Origin: "https://app.example.com" } });
    expect(headers.has("Access-Control-Allow-Origin")).toBe(false);
  });

  it("never send a cookie: credentials are not allowed", async () => {
    const { headers } = await call("OPTIONS", "/healthz", { headers: preflightOf("https://app.example.com") });
    expect(headers.has("Access-Control-Allow-Credentials")).toBe(false);
  });

  it("read what the answers tell them", async () => {
    const { headers } = await call("GET", "/healthz", { headers: { Origin: "https://app.example.com" } });
    const exposed = headers.get("Access-Control-Expose-Headers")?.split(", ");
    for (const name of ["RateLimit-Policy", "RateLimit", "Retry-After", "X-Request-Id", "Server-Timing"]) {
      expect(exposed).toContain(name);
    }
    for (const name of ["X-Cache", "Age", "X-Cost"]) expect(exposed).toContain(name);
  });

  it("get nothing of CORS where no page asks", async () => {
    const { headers } = await call("GET", "/healthz");
    expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });
});

describe("a preflight", () => {
  const page = "https://app.example.com";

  it("allows every method, and the headers that were asked for", async () => {
    const asked = "authorization,x-stainless-os";
    const headers = { ...preflightOf(page), "Access-Control-Request-Headers": asked };
    const preflight = await call("OPTIONS", "/v2/some-model/run", { headers });
    expect(preflight.status).toBe(204);
    expect(await preflight.text()).toBe("");
    const methods = preflight.headers.get("Access-Control-Allow-Methods")?.split(", ");
    expect(methods).toEqual(expect.arrayContaining(["GET", "POST", "PUT", "PATCH", "DELETE"]));
    expect(preflight.headers.get("Access-Control-Allow-Headers")).toBe(asked);
    expect(preflight.headers.get("Access-Control-Max-Age")).toBe("86400");
  });

  it.each([
    ["none was asked for", undefined],
    ["too many were", "x".repeat(2049)],
  ])("allows the usual headers where %s", async (_, asked) => {
    const headers = { ...preflightOf(page), ...(asked && { "Access-Control-Request-Headers": asked }) };
    const allowed = (await call("OPTIONS", "/healthz", { headers })).headers.get("Access-Control-Allow-Headers");
    expect(allowed).toMatch(/^Authorization, Content-Type, Idempotency-Key/);
  });

  it("echoes as many headers as it ever does", async () => {
    const asked = "x".repeat(2048);
    const headers = { ...preflightOf(page), "Access-Control-Request-Headers": asked };
    const preflight = await call("OPTIONS", "/healthz", { headers });
    expect(preflight.headers.get("Access-Control-Allow-Headers")).toBe(asked);
  });
});

describe("an unknown error", () => {
  it("leaves its place in the log, and its message, which may name a value, on a developer's machine alone", () => {
    const exchange = { requestId: "r-1", startedAt: 0, errorShape: "superset" } as const;
    expect(JSON.parse(describeFault(new TypeError("a word"), exchange, true))).toMatchObject({ message: "a word" });
    const line = describeFault(new TypeError("secret-value"), exchange, false);
    expect(line).not.toContain("secret-value");
    expect(JSON.parse(line)).toMatchObject({ requestId: "r-1", code: "INTERNAL", error: "TypeError" });
    expect(JSON.parse(line)).toHaveProperty("stack.0", expect.stringContaining("door.test.ts"));
    expect(describeFault("secret-value", exchange, false)).not.toContain("secret-value");
  });
});

describe("a misconfigured deployment", () => {
  it.each([
    ["ADMIN_TOKEN", ""],
    ["SIGNING_SECRET", "too-short"],
    ["UPSTREAM_URL", "http://api.example.com"],
    ["ANONYMOUS", "perhaps"],
    ["ALLOWED_ORIGINS", "app.example.net"],
  ])("says outside only that it is, and in the log that %s is at fault", async (setting, value) => {
    const log = watchLog();
    const settings = { ...deployedSettings, UPSTREAM_API_KEY: "x".repeat(32), [setting]: value };
    for (const [method, path] of [
      ["GET", "/healthz"],
      ["POST", "/nowhere"],
      ["OPTIONS", "/models"],
    ] as const) {
      const problem = await expectProblem(await call(method, path, { settings }), "MISCONFIGURED");
      expect(JSON.stringify(problem)).not.toContain(setting);
    }
    expect(log.errors[0]).toMatchObject({ code: "MISCONFIGURED", faults: [{ setting, problem: expect.any(String) }] });
    expect(log.lines[0]).toMatchObject({ status: 500, requestId: log.errors[0]?.["requestId"] });
    if (value) expect(log.text()).not.toContain(value);
  });
});

describe("a route that is none", () => {
  it.each(["/", "/nowhere", "/healthz/", "/HEALTHZ", "//healthz", "/models/a/b", "/v3/x/run", "/%", "/%00"])(
    "%s is 404",
    async (path) => {
      await expectProblem(await call("GET", path), "NOT_FOUND");
    },
  );

  it("answers HEAD with 404 and no body", async () => {
    const response = await call("HEAD", "/nowhere");
    expect(response.status).toBe(404);
    expect(await response.text()).toBe("");
  });
});

describe("a wrong method", () => {
  it.each(["/healthz", "/openapi.json", "/models", "/models/anything"])(
    "on %s is 405 with what it takes",
    async (path) => {
      for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
        const response = await call(method, path);
        expect(response.headers.get("Allow")).toBe("GET, HEAD");
        const { detail } = await expectProblem(response, "METHOD_NOT_ALLOWED");
        expect(detail).toBe("This route takes GET, HEAD.");
      }
    },
  );
});

describe("whatever is asked", () => {
  const segment = fc.oneof(
    fc.constantFrom(
      "models",
      "healthz",
      "openapi.json",
      "v2",
      "run",
      "..",
      ".",
      "",
      "%",
      "%2e%2e",
      "%00",
      "%C0%AF",
      "*",
    ),
    fc.string({ unit: "grapheme", maxLength: 12 }),
    fc.webSegment(),
  );
  const path = fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join("/")}`);
  const method = fc.constantFrom("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS");

  it("is answered as JSON, never with a 500", async () => {
    vi.spyOn(console, "log").mockImplementation(() => {});
    const page = fc.option(fc.webUrl(), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(method, path, page, async (asked, at, from) => {
        fc.pre(URL.canParse(origin + at));
        const response = await call(asked, at, { ...(from && { headers: { Origin: from } }) });
        expect(response.status).toBeLessThan(500);
        expect(response.headers.get("X-Request-Id")).toMatch(uuid);
        if (asked === "HEAD" || asked === "OPTIONS") expect(await response.text()).toBe("");
        else if (response.ok) await response.json();
        else await readProblem(response);
      }),
      { numRuns: amount(500) },
    );
  });
});

function preflightOf(page: string): Record<string, string> {
  return { Origin: page, "Access-Control-Request-Method": "POST" };
}
