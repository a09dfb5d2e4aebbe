// What the platform refuses: each from a valid call, with one thing changed, and the code that comes of it.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import type { ErrorCode } from "../../src/errors.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { expectProblem } from "../support/problems.ts";
import { endpoint, key, noon, setTime } from "./support/endpoint.ts";

const model = "black-forest-labs-flux-1-dev";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

describe("a path of an endpoint that is no route", () => {
  it("is 404 for who has a key, 401 for who has none, and 405 by another method than its own", async () => {
    await expectProblem(await endpoint().send("GET", "unknown"), "NOT_FOUND");
    await expectProblem(await endpoint().send("GET", "unknown", { key: "wrong" }), "UNAUTHORIZED");
    await expectProblem(await endpoint("nobody").send("GET", "unknown"), "ENDPOINT_NOT_FOUND");
    await expectProblem(await endpoint().send("GET", "run"), "METHOD_NOT_ALLOWED");
  });

  it("is refused in OpenAI's shape below openai/", async () => {
    const response = await endpoint().send("PUT", "openai/v1/models");
    expect(response.status).toBe(405);
    expect(await response.json()).toEqual({ error: expect.objectContaining({ code: "METHOD_NOT_ALLOWED" }) });
  });
});

describe("a job request", () => {
  const valid = { input: {}, policy: { ttl: 10_000, executionTimeout: 5000 }, webhook: "https://app.example.com/hook" };

  it("is accepted, with keys that nobody knows", async () => {
    const answer = await endpoint().post("run", {
      ...valid,
      webhookV2: 1,
      timeout: 3,
      id: "mine",
      s3Config: { objectPath: 1 },
    });
    expect(answer).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}-\w+$/), status: "IN_QUEUE" });
  });

  it.each<[string, object]>([
    ["without input", { input: undefined }],
    ["with a list as input", { input: [] }],
    ["with null as input", { input: null }],
    ["with a ttl below the least", { policy: { ttl: 9999 } }],
    ["with a ttl above the most", { policy: { ttl: 604_800_001 } }],
    ["with a broken ttl", { policy: { ttl: 10_000.5 } }],
    ["with an executionTimeout below the least", { policy: { executionTimeout: 4999 } }],
    ["with an executionTimeout above the most", { policy: { executionTimeout: 604_800_001 } }],
    ["with a lowPriority that is a word", { policy: { lowPriority: "yes" } }],
    ["with a webhook that is no URL", { webhook: "example.com" }],
    ["with a webhook of another protocol", { webhook: "ftp://example.com" }],
  ])("%s is refused", async (_, change) => {
    await expectProblem(await endpoint().send("POST", "run", { json: { ...valid, ...change } }), "INVALID_REQUEST");
  });

  it("that is no JSON is refused", async () => {
    await expectProblem(await endpoint().send("POST", "run", { body: '{"input":{}' }), "INVALID_JSON");
  });

  it.each([
    ["run", limits.runPayloadBytes],
    ["runsync", limits.runsyncPayloadBytes],
  ])("to %s may be as large as the limit and not a byte larger", async (operation, limit) => {
    const e = endpoint("bare");
    const frame = '{"input":{"x":""}}'.length;
    const sized = (bytes: number) => `{"input":{"x":"${"y".repeat(bytes - frame)}"}}`;
    await expectProblem(await e.send("POST", operation, { body: sized(limit + 1) }), "PAYLOAD_TOO_LARGE");
    if (operation === "run") expect((await e.send("POST", operation, { body: sized(limit) })).status).toBe(200);
  });
});

describe("a query", () => {
  it.each([
    ["POST", "runsync?wait=999"],
    ["POST", "runsync?wait=300001"],
    ["POST", "runsync?wait=1e3"],
    ["GET", "status-sync/JOB?wait=999"],
    ["GET", "status-sync/JOB?wait=300001"],
    ["GET", "stream/JOB?wait=999"],
    ["GET", "stream/JOB?wait=300001"],
    ["GET", "stream/JOB?format=xml"],
    ["GET", "status/JOB?ttl=9999"],
    ["GET", "status/JOB?ttl=604800001"],
    ["GET", "status/JOB?ttl=-10000"],
    ["GET", "requests?limit=0"],
    ["GET", "requests?limit=1001"],
    ["GET", "requests?offset=-1"],
  ])("%s %s is out of range", async (method, path) => {
    const e = endpoint();
    const id = await e.submit();
    const sent = method === "POST" ? { json: { input: {} } } : {};
    await expectProblem(await e.send(method, path.replace("JOB", id), sent), "INVALID_REQUEST");
  });

  it.each(["status/JOB?ttl=10000", "status/JOB?ttl=604800000", "status/JOB?other=1", "requests?limit=1000&offset=0"])(
    "%s is in range",
    async (path) => {
      const e = endpoint();
      expect((await e.send("GET", path.replace("JOB", await e.submit()))).status).toBe(200);
    },
  );
});

describe("a job's id", () => {
  const operations = [
    ["GET", "status"],
    ["POST", "status"],
    ["GET", "status-sync"],
    ["GET", "stream"],
    ["POST", "cancel"],
    ["POST", "retry"],
  ] as const;
  it.each(operations)("that is unknown: %s %s", async (method, operation) => {
    await expectProblem(await endpoint().send(method, `${operation}/no-such-job`), "JOB_NOT_FOUND");
  });
  it.each(operations)("that is endless, or something else: %s %s", async (method, operation) => {
    await expectProblem(await endpoint().send(method, `${operation}/${"a".repeat(129)}`), "JOB_NOT_FOUND");
    await expectProblem(await endpoint().send(method, `${operation}/a%20b`), "JOB_NOT_FOUND");
  });
});

describe("an endpoint", () => {
  it.each(["no-such-model", "..%2f..", "a".repeat(129)])("%s is unknown", async (name) => {
    await expectProblem(await endpoint(name).send("GET", "health"), "ENDPOINT_NOT_FOUND");
  });
  it.each([model, "bare"])("%s is known", async (name) => {
    expect((await endpoint(name).send("GET", "health")).status).toBe(200);
  });
  it("that ENDPOINTS does not name is unknown", async () => {
    await expectProblem(
      await endpoint("bare").send("GET", "health", { settings: { ENDPOINTS: "" } }),
      "ENDPOINT_NOT_FOUND",
    );
  });
});

describe("a key", () => {
  const codes: [string, string, ErrorCode | undefined][] = [
    ["bare", key, undefined],
    ["as Bearer", `Bearer ${key}`, undefined],
    ["as bearer", `bearer  ${key}`, undefined],
    ["one letter short", key.slice(0, -1), "UNAUTHORIZED"],
    ["one letter long", `${key}x`, "UNAUTHORIZED"],
    ["of another scheme", `Basic ${key}`, "UNAUTHORIZED"],
    ["missing", "", "UNAUTHORIZED"],
  ];
  it.each(codes)("%s", async (_, sent, code) => {
    const response = await endpoint().send("GET", "health", { key: sent });
    if (!code) return expect(response.status).toBe(200);
    expect(response.headers.get("WWW-Authenticate")).toBe("Bearer");
    await expectProblem(response, code);
  });

  it("of one account shows nothing of another's jobs", async () => {
    const settings = { PLATFORM_API_KEY: "first=key-of-the-first,second=key-of-the-second" };
    const e = endpoint();
    const submitted = { json: { input: {} }, settings };
    const { id } = await e.read<{ id: string }>("POST", "run", { ...submitted, key: "key-of-the-first" });
    expect((await e.send("GET", `status/${id}`, { settings, key: "key-of-the-first" })).status).toBe(200);
    const stranger = { settings, key: "key-of-the-second" };
    await expectProblem(await e.send("GET", `status/${id}`, stranger), "JOB_NOT_FOUND");
    expect(await e.read("GET", "requests", stranger)).toMatchObject({ total: 0 });
    await expectProblem(await e.send("GET", "health", { settings }), "UNAUTHORIZED");
  });
});
