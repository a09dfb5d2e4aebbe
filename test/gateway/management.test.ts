// The operator's way to the management interface: where it leads, with which key, and who is kept out.
import { afterEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../support/empty-storage.ts";
import { call, type Settings } from "../support/front-door.ts";
import { deployedSettings, testSettings } from "../support/settings.ts";

afterEach(emptyStorage);

const operator = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
const serverKey = "key-of-the-real-service-0123456789abcdef";
const remote: Settings = {
  UPSTREAM_URL: "https://jobs.example",
  UPSTREAM_API_KEY: serverKey,
  MANAGEMENT_URL: "https://manage.example/v1",
};
const json = (body: unknown, init: ResponseInit = {}) => Response.json(body, init);

/** What the real service is sent, and answers. */
function realService(answer: () => Response | Promise<Response>) {
  const seen: Request[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    seen.push(new Request(input as Request, init));
    return answer();
  });
  return seen;
}

describe("with the embedded platform", () => {
  it("acts for its first account", async () => {
    const body = JSON.stringify({ name: "one", imageName: "example.com/one:1" });
    const made = await call("POST", "/v1/templates", { headers: operator, body });
    expect(made.status).toBe(200);
    const { id } = await made.json<{ id: string }>();
    const own = { Authorization: `Bearer ${testSettings.PLATFORM_API_KEY}` };
    expect((await call("GET", `/platform/v1/templates/${id}`, { headers: own })).status).toBe(200);
    const changed = await call("PATCH", `/v1/templates/${id}`, { headers: operator, body: '{"readme":"x"}' });
    expect(await changed.json()).toMatchObject({ id, readme: "x" });
    const gone = await call("DELETE", `/v1/templates/${id}`, { headers: operator });
    expect([gone.status, await gone.text()]).toEqual([204, ""]);
  });

  it("hands on the query, the status and the refusal", async () => {
    const list = await call("GET", "/v1/templates?includeRunpodTemplates=true", { headers: operator });
    expect((await list.json<unknown[]>()).length).toBeGreaterThan(0);
    const made = await call("POST", "/v1/pods", { headers: operator, body: '{"imageName":"example.com/x:1"}' });
    expect(made.status).toBe(201);
    const refusal = await call("POST", "/v1/pods", { headers: operator, body: "{}" });
    expect(refusal.status).toBe(400);
    expect(await refusal.json()).toMatchObject({
      code: "INVALID_REQUEST",
      message: expect.stringMatching(/^imageName/),
    });
  });
});

describe("with a real service", () => {
  it("calls it with the server's key, and says nothing else of itself", async () => {
    const seen = realService(() =>
      json({ id: "pod1" }, { status: 201, headers: { "Set-Cookie": "a=b", "X-Theirs": "1" } }),
    );
    const headers = { ...operator, Cookie: "c=d", "X-Mine": "1" };
    const answer = await call("POST", "/v1/pods?x=1%202", { headers, body: '{"name":"p"}', settings: remote });
    expect([answer.status, await answer.json()]).toEqual([201, { id: "pod1" }]);
    expect(answer.headers.has("Set-Cookie") || answer.headers.has("X-Theirs")).toBe(false);
    const [request] = seen;
    expect(request?.url).toBe("https://manage.example/v1/pods?x=1%202");
    expect([request?.method, await request?.text(), request?.redirect]).toEqual(["POST", '{"name":"p"}', "manual"]);
    expect(Object.fromEntries(request?.headers ?? [])).toEqual({
      accept: "application/json",
      authorization: `Bearer ${serverKey}`,
      "content-type": "application/json",
    });
  });

  it.each([
    [401, "UPSTREAM_REFUSED"],
    [302, "UPSTREAM_REDIRECT"],
  ])("that answers %i is %s", async (status, code) => {
    realService(() => new Response(null, { status, headers: { Location: "https://elsewhere.example" } }));
    const answer = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect([answer.status, (await answer.json<{ code: string }>()).code]).toEqual([502, code]);
  });

  it("that cannot be reached is said to be so", async () => {
    vi.spyOn(console, "warn").mockImplementation(() => {});
    realService(() => Promise.reject(new TypeError("no route to host")));
    const answer = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect(await answer.json()).toMatchObject({ code: "UPSTREAM_UNREACHABLE", message: expect.any(String) });
  });

  it.each(["/v1/a%2Fb", "/v1/pods//x", "/v1/.hidden", "/v1/a/b/c/d/e", "/v1/pods/%00"])(
    "is not called for %s",
    async (path) => {
      const seen = realService(() => json({}));
      const answer = await call("GET", path, { headers: operator, settings: remote });
      expect([answer.status, seen]).toEqual([404, []]);
    },
  );

  it("is not called above its own path", async () => {
    const seen = realService(() => json({}));
    await call("GET", "/v1/pods/%2e%2e/%2E%2E/v1/x", { headers: operator, settings: remote });
    expect(seen.map(({ url }) => url)).toEqual(["https://manage.example/v1/x"]);
  });

  it("that has no MANAGEMENT_URL is 501, and nothing is called", async () => {
    const seen = realService(() => json({}));
    const settings = { ...remote, MANAGEMENT_URL: "" };
    const answer = await call("GET", "/v1/pods", { headers: operator, settings });
    expect([answer.status, (await answer.json<{ code: string }>()).code]).toEqual([501, "NOT_IMPLEMENTED"]);
    expect(seen).toEqual([]);
  });

  it("is meant where MANAGEMENT_URL is set, whatever runs jobs; the platform's key never leaves", async () => {
    const seen = realService(() => json([]));
    const settings = { ...deployedSettings, UPSTREAM_API_KEY: serverKey, MANAGEMENT_URL: "https://manage.example/v1/" };
    await call("GET", "/v1/pods", { headers: operator, settings });
    expect(seen.map(({ url }) => url)).toEqual(["https://manage.example/v1/pods"]);
    expect(seen[0]?.headers.get("Authorization")).toBe(`Bearer ${serverKey}`);
  });
});

describe("anybody but the operator", () => {
  const keys: [string, Record<string, string>][] = [
    ["nobody", {}],
    ["the app's backend", { Authorization: `Bearer ${testSettings.APP_SECRET}` }],
    ["an account of the platform", { Authorization: `Bearer ${testSettings.PLATFORM_API_KEY}` }],
    ["a guess", { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}x` }],
  ];

  it.each(keys)("%s is refused, whatever the method, and nothing is called", async (_, headers) => {
    const seen = realService(() => json({}));
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      const answer = await call(method, "/v1/pods", { headers, settings: remote });
      expect([answer.status, (await answer.json<{ code: string }>()).code]).toEqual([401, "UNAUTHORIZED"]);
    }
    expect(seen).toEqual([]);
  });

  it("with a session of its own is refused", async () => {
    const { token } = await (await call("POST", "/sessions", { body: "{}" })).json<{ token: string }>();
    expect(token).toMatch(/\./);
    const answer = await call("GET", "/v1/pods", { headers: { Authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(401);
  });
});
