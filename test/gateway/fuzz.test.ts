// Whatever a client sends: never a 500, never an empty error, and nothing that is no name ever reaches the upstream.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { amount } from "../support/amount.ts";
import { FakeUpstream, json, model, watchCanary } from "./jobs/fake-upstream.ts";

watchCanary();

const operations = ["run", "runsync", "status", "status-sync", "stream", "events", "cancel", "retry", "health"];
const others = ["purge-queue", "requests", "openai/v1/chat/completions", "openai/v1/models", "", "nonsense"];
const method = fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS");
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom("..", ".", "a/b", "\0", "x".repeat(10_000)),
);
const segment = fc.oneof(
  text.map((value) => encodeURIComponent(value.toWellFormed())),
  fc.constantFrom("..", "%2e%2e", "%2F", "%5c", "%00", "%", "%zz", ";", "a%0d%0ab", model, "x".repeat(10_000)),
);
const json_ = fc.oneof(
  fc.json(),
  fc.string({ unit: "binary" }),
  fc
    .record({ input: fc.jsonValue(), webhook: fc.jsonValue(), policy: fc.jsonValue(), s3Config: fc.jsonValue() })
    .map((value) => JSON.stringify(value)),
  fc.constantFrom(`{"input":{"prompt":"x"}}`, `{"__proto__":{},"input":{"prompt":"x"}}`, "[".repeat(5000), ""),
);
const headerValue = fc.string({ unit: fc.constantFrom(...' \tabc=;,"*/09-') });
const headers = fc.dictionary(
  fc.constantFrom(
    "Idempotency-Key",
    "Last-Event-ID",
    "Content-Type",
    "Accept",
    "Cache-Control",
    "Range",
    "Origin",
    "Cookie",
  ),
  headerValue,
);
const query = fc.oneof(
  fc.constant(""),
  fc.constantFrom("?wait=1", "?wait=-1", "?wait=a", "?ticket=", "?format=x", "?limit=1e9"),
  text.map((value) => `?wait=${encodeURIComponent(value.toWellFormed())}`),
);

const upstreamPath =
  /^\/v2\/[A-Za-z0-9][A-Za-z0-9_-]{0,127}\/(run|runsync|health|requests|purge-queue|openai\/v1\/[a-z0-9/_-]+|(status|status-sync|stream|cancel|retry)\/[A-Za-z0-9_-]{1,128})$/;

describe("whatever a client sends", () => {
  it("gets an answer that is no 500, and reaches the upstream by names alone", async () => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE", stream: [] }));
    const job = await upstream.job();
    const operation = fc.constantFrom(...operations, ...others);
    const name = fc.oneof({ weight: 3, arbitrary: fc.constant(model) }, { weight: 2, arbitrary: segment });
    const which = fc.oneof(
      fc.constantFrom(`/${job}`, ""),
      segment.map((value) => `/${value}`),
    );
    const call = fc.record({ method, name, operation, which, query, headers, body: json_ });
    await fc.assert(
      fc.asyncProperty(call, async (drawn) => {
        const path = `/v2/${drawn.name}/${drawn.operation}${drawn.which}${drawn.query}`;
        const bodyless = ["GET", "HEAD"].includes(drawn.method);
        if (drawn.operation === "events" && drawn.which === `/${job}` && drawn.method !== "POST") return;
        const init = { headers: drawn.headers, ...(!bodyless && { body: drawn.body }) };
        const response = await upstream.call(drawn.method, path, init);
        const answer = await response.text();
        expect([path, answer.slice(0, 300), response.status === 500]).toEqual([path, answer.slice(0, 300), false]);
        if (response.status >= 400 && drawn.method !== "HEAD") expect(() => JSON.parse(answer)).not.toThrow();
      }),
      { numRuns: amount(1000) },
    );
    expect(upstream.seen.map(({ path }) => path).filter((path) => !upstreamPath.test(path))).toEqual([]);
  });

  it.each([
    "..",
    "%2e%2e",
    "a%2Fb",
    "a%5Cb",
    "a%00b",
    "a%0D%0Ab",
    "%",
    "a.b",
    "a b",
    "é",
    "x".repeat(129),
    "x".repeat(10_240),
    "-a",
    "_a",
  ])("%s is no model, and no job", async (name) => {
    const upstream = new FakeUpstream(() => json({ id: "job-1", status: "IN_QUEUE" }));
    await upstream.job();
    const valid = `/v2/${model}/status/job-1`;
    for (const path of [valid.replace(model, name), valid.replace("job-1", name)]) {
      const response = await upstream.call("GET", path);
      expect([name, [400, 404].includes(response.status)]).toEqual([name, true]);
    }
    const submitted = await upstream.call("POST", `/v2/${name}/run`, { body: { input: {} } });
    expect([400, 404, 405]).toContain(submitted.status);
    expect(upstream.seen).toEqual([]);
  });
});
