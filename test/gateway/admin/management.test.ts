// The operator's way to the management interface: where it leads, with which key, and who is kept out.
import { afterEach, describe, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { call, type Settings } from "../../support/front-door.ts";
import { deployedSettings, testSettings } from "../../support/settings.ts";

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

describe("an endpoint made for users", () => {
  const asUser = async (settings: Settings = {}) => {
    const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
    const minted = await call("POST", "/tokens", { headers, body: '{"user":"ada"}', settings });
    return { Authorization: `Bearer ${(await minted.json<{ token: string }>()).token}` };
  };
  const template = async () => {
    const body = JSON.stringify({ name: "t", imageName: "example.com/t:1", isServerless: true });
    return (await (await call("POST", "/v1/templates", { headers: operator, body })).json<{ id: string }>()).id;
  };
  const make = async (more: object) =>
    call("POST", "/v1/endpoints", {
      headers: operator,
      body: JSON.stringify({ templateId: await template(), ...more }),
    });

  it("is opened in the same call, at its price", async () => {
    const made = await make({ passthrough: true, maxUsd: 0.01 });
    const { id, ...endpoint } = await made.json<Record<string, unknown>>();
    expect([made.status, endpoint]).toEqual([200, expect.objectContaining({ passthrough: true, maxUsd: 0.01 })]);
    const answer = await call("POST", `/v2/${id}/run`, { headers: await asUser(), body: '{"input":{}}', settings: {} });
    expect(answer.status).toBe(200);
    const known = await call("GET", `/admin/models/${id}`, { headers: operator });
    expect(await known.json()).toMatchObject({ enabled: true, passthrough: true, maxUsd: 0.01 });
  });

  it("is unknown to users without that, and the log says how to open it", async () => {
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const { id } = await (await make({})).json<{ id: string }>();
    expect(log.mock.calls.flat().join()).toContain(`PUT /admin/models/${id}`);
    const answer = await call("POST", `/v2/${id}/run`, { headers: await asUser(), body: '{"input":{}}', settings: {} });
    expect([answer.status, (await answer.json<{ code: string }>()).code]).toEqual([404, "MODEL_NOT_FOUND"]);
  });

  it.each([
    [{ passthrough: true }, /^maxUsd/],
    [{ passthrough: true, maxUsd: -1 }, /^maxUsd/],
    [{ passthrough: "yes", maxUsd: 1 }, /^passthrough/],
  ])("is not made with %j", async (more, message) => {
    const made = await make(more);
    expect([made.status, await made.json()]).toEqual([
      400,
      expect.objectContaining({ message: expect.stringMatching(message) }),
    ]);
    expect(await (await call("GET", "/v1/endpoints", { headers: operator })).json()).toEqual([]);
  });

  it("is asked of a real service without what is the gateway's alone", async () => {
    const seen = realService(() => json({ id: "made1" }));
    const body = JSON.stringify({ templateId: "t", passthrough: true, maxUsd: 0.5 });
    const made = await call("POST", "/v1/endpoints", { headers: operator, body, settings: remote });
    expect(await made.json()).toEqual({ id: "made1", enabled: true, passthrough: true, maxUsd: 0.5 });
    expect(await seen[0]?.json()).toEqual({ templateId: "t" });
  });
});

describe("attack: an endpoint that the service names wrongly", () => {
  const make = async (answer: Response, more: object = { passthrough: true, maxUsd: 1 }) => {
    realService(() => answer);
    const body = JSON.stringify({ templateId: "t", ...more });
    return call("POST", "/v1/endpoints", { headers: operator, body, settings: remote });
  };
  const opened = async () => {
    const answer = await call("GET", "/admin/models", { headers: operator });
    const { models } = await answer.json<{ models: { model: string; passthrough: boolean }[] }>();
    return models.filter(({ passthrough }) => passthrough).map(({ model }) => model);
  };

  it.each(["", "made", "[]", "null", '"made1"'])("by %j is not opened", async (text) => {
    const made = await make(new Response(text, { status: 201 }));
    expect([made.status, (await made.json<{ code: string }>()).code]).toEqual([502, "UPSTREAM_BAD_JSON"]);
    expect(await opened()).toEqual([]);
  });

  it.each([undefined, null, 7, "", "__proto__", "a/b", "../x", "x".repeat(129)])("%j is not opened", async (id) => {
    const made = await make(json({ id }));
    expect([made.status, (await made.json<{ code: string }>()).code]).toEqual([502, "UPSTREAM_BAD_ANSWER"]);
    expect(await opened()).toEqual([]);
  });

  it.each(["", "made", "null", '{"id":"a/b"}'])(
    "is answered as it came where it was not to be opened: %j",
    async (text) => {
      const log = vi.spyOn(console, "log").mockImplementation(() => {});
      const made = await make(new Response(text, { status: 201 }), {});
      expect([made.status, await made.text()]).toEqual([201, text]);
      expect(log.mock.calls.flat().join()).not.toContain("PUT /admin");
    },
  );
});

describe("with a real service", () => {
  it.each(["deflate", "zstd", "GZIP", "gzip, br"])("attack: that answers in %s is not passed on", async (encoding) => {
    const answer = new Response("what nobody can search", {
      headers: { "Content-Encoding": encoding },
      encodeBody: "manual",
    });
    realService(() => answer);
    const told = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect([told.status, (await told.json<{ code: string }>()).code]).toEqual([502, "UPSTREAM_BAD_ANSWER"]);
  });

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
    ["a body", () => json({ name: serverKey })],
    ["a type", () => json({}, { headers: { "Content-Type": `text/${serverKey}` } })],
    ["a time", () => json({}, { headers: { "Retry-After": serverKey } })],
    ["a header without a body", () => new Response(null, { status: 204, headers: { "Retry-After": serverKey } })],
  ])("that says our key in %s is not passed on", async (_, answer) => {
    vi.spyOn(console, "error").mockReturnValue();
    vi.spyOn(console, "warn").mockReturnValue();
    realService(answer);
    const told = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect([told.status, (await told.json<{ code: string }>()).code]).toEqual([502, "UPSTREAM_BAD_ANSWER"]);
  });

  it.each([
    [401, "UPSTREAM_REFUSED"],
    [302, "UPSTREAM_REDIRECT"],
  ])("that answers %i is %s", async (status, code) => {
    realService(() => new Response(null, { status, headers: { Location: "https://elsewhere.example" } }));
    const answer = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect([answer.status, (await answer.json<{ code: string }>()).code]).toEqual([502, code]);
  });

  it.each([101, 600, 999])("that answers %i answers none", async (status) => {
    realService(() => Object.defineProperty(new Response("made"), "status", { value: status }));
    const answer = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect([answer.status, (await answer.json<{ code: string }>()).code]).toEqual([502, "UPSTREAM_BAD_ANSWER"]);
  });

  it("that cannot be reached is said to be so", async () => {
    vi.spyOn(console, "warn").mockImplementation(() => {});
    realService(() => Promise.reject(new TypeError("no route to host")));
    const answer = await call("GET", "/v1/pods", { headers: operator, settings: remote });
    expect(await answer.json()).toMatchObject({ code: "UPSTREAM_UNREACHABLE", message: expect.any(String) });
  });

  it.each(["/v1/a%2Fb", "/v1/pods//x", "/v1/.hidden", "/v1/a/b/c/d/e"])("is not called for %s", async (path) => {
    const seen = realService(() => json({}));
    const answer = await call("GET", path, { headers: operator, settings: remote });
    expect([answer.status, seen]).toEqual([404, []]);
  });

  it.each(["!!bad%20id", "bad_id!", "a%2Fb", "x".repeat(300)])("is not called for %s, which is no id", async (id) => {
    const seen = realService(() => json({}));
    for (const path of [`/v1/templates/${id}`, `/v1/templates/${id}/update`]) {
      const method = path.endsWith("update") ? "POST" : "GET";
      const answer = await call(method, path, { headers: operator, settings: remote });
      const embedded = await call(method, path, { headers: operator });
      expect([answer.status, embedded.status, seen]).toEqual([400, 400, []]);
      expect(await answer.json()).toMatchObject({ code: "INVALID_REQUEST" });
    }
  });

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
