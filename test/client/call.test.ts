// A call whose answer is lost, or that is refused: what is made again, and what never is.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CallOptions, createSluice } from "../../src/client/index.ts";
import { broken, done, events, FakeGateway, json, refusal } from "./fake-gateway.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const clientOf = (gateway: FakeGateway) => createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });

/** However long it waits in between. */
async function settled<T>(work: Promise<T>): Promise<PromiseSettledResult<T>> {
  const all = Promise.allSettled([work]);
  await vi.runAllTimersAsync();
  const [result] = await all;
  return result;
}

describe("a question", () => {
  it.each<[string, () => Response | Error]>([
    ["without an answer", broken],
    ["answered by an error page of the network", () => new Response("<h1>502</h1>", { status: 502 })],
    ["answered 503", () => refusal(503, "METER_UNAVAILABLE", "The meter is away.")],
    ["answered 429", () => refusal(429, "RATE_LIMITED", "Too many.", { "Retry-After": "10" })],
  ])("%s is asked again, later each time", async (_name, answer) => {
    let asked = 0;
    const gateway = new FakeGateway().on(/usage/, () => (++asked < 3 ? answer() : json({ plan: "free" })));
    expect(await settled(clientOf(gateway).usage())).toMatchObject({ status: "fulfilled", value: { plan: "free" } });
    expect(asked).toBe(3);
  });

  it("waits for as long as the gateway says", async () => {
    let asked = 0;
    const busy = () => refusal(429, "RATE_LIMITED", "Too many.", { "Retry-After": "10" });
    const gateway = new FakeGateway().on(/usage/, () => (++asked < 2 ? busy() : json({})));
    const answer = clientOf(gateway).usage();
    await vi.advanceTimersByTimeAsync(9_900);
    expect(asked).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    await answer;
  });

  it("is given up after five times, with what was said last", async () => {
    const gateway = new FakeGateway().on(/usage/, broken);
    const result = await settled(clientOf(gateway).usage());
    expect(result).toMatchObject({ reason: { name: "SluiceError", code: "NETWORK", cause: expect.any(TypeError) } });
    expect(gateway.seen).toHaveLength(5);
  });

  it.each<[string, () => Response]>([
    ["refused for what it says", () => refusal(400, "INVALID_REQUEST", "limit: expected a number")],
    ["to be made much later", () => refusal(429, "QUOTA_EXCEEDED", "Used up.", { "Retry-After": "3600" })],
    ["that fails inside", () => refusal(500, "INTERNAL", "Request id request-1.")],
  ])("%s is not repeated, and tells all that the gateway said", async (_name, answer) => {
    const gateway = new FakeGateway().on(/usage/, answer);
    const said = (await answer().json()) as { code: string; detail: string; status: number };
    const reason = { code: said.code, message: said.detail, status: said.status, requestId: "request-1" };
    expect(await settled(clientOf(gateway).usage())).toMatchObject({ reason });
    expect(gateway.seen).toHaveLength(1);
  });

  it("says in seconds when to come again", async () => {
    const answer = () => refusal(429, "QUOTA_EXCEEDED", "Used up.", { "Retry-After": "3600" });
    const result = await settled(clientOf(new FakeGateway().on(/usage/, answer)).usage());
    expect(result).toMatchObject({ reason: { retryAfter: 3600 } });
  });
});

describe("a submission", () => {
  const path = /POST \/v2\/painter\/run$/;
  const gatewayOf = (...answers: (Response | Error)[]) =>
    new FakeGateway()
      .on(/events/, () => events([done()]))
      .on(path, () => answers.shift() ?? json({ id: "job-1", status: "IN_QUEUE" }));

  it.each<[string, Response | Error]>([
    ["whose answer was lost", broken()],
    ["whose answer was lost on the way", new Response("<h1>522</h1>", { status: 522 })],
    ["that nobody took", refusal(503, "UPSTREAM_DOWN", "The model service is down.")],
    ["that is still being submitted", refusal(409, "IN_PROGRESS", "Still submitting.", { "Retry-After": "1" })],
  ])("%s is made again under the same key", async (_name, answer) => {
    const gateway = gatewayOf(answer);
    const job = await settled(clientOf(gateway).run("painter", { prompt: "a" }));
    expect(job).toMatchObject({ value: { id: "job-1", output: "made" } });
    const keys = gateway.calls(path).map(({ headers }) => headers.get("Idempotency-Key"));
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^(\d+-){15}\d+$/);
  });

  it.each<[string, Response]>([
    ["in doubt", refusal(502, "UPSTREAM_UNREACHABLE", "The model service stopped answering.")],
    ["late", refusal(504, "UPSTREAM_TIMEOUT", "The model service did not answer in time.")],
    ["over a limit", refusal(429, "TOO_MANY_JOBS", "jobs: 2 at the same time", { "Retry-After": "1" })],
    ["wrong", refusal(400, "INVALID_REQUEST", "input.prompt: Invalid input: expected string, received number")],
  ])("that is %s is made once", async (_name, answer) => {
    const gateway = gatewayOf(answer);
    expect(await settled(clientOf(gateway).run("painter", {}))).toMatchObject({ status: "rejected" });
    expect(gateway.calls(path)).toHaveLength(1);
  });

  it("has a key of its own each time, and the caller's where there is one", async () => {
    const gateway = gatewayOf();
    const sluice = clientOf(gateway);
    await settled(sluice.run("painter", {}));
    await settled(sluice.run("painter", {}));
    await settled(sluice.run("painter", {}, { idempotencyKey: "order-7" }));
    const keys = gateway.calls(path).map(({ headers }) => headers.get("Idempotency-Key"));
    expect(new Set(keys).size).toBe(3);
    expect(keys[2]).toBe("order-7");
  });

  it("carries what goes beside the input", async () => {
    const gateway = gatewayOf();
    const policy = { ttl: 60_000 };
    await settled(clientOf(gateway).run("painter", { prompt: "a" }, { webhook: "https://app.test/done", policy }));
    expect(gateway.calls(path)[0]?.body).toEqual({ input: { prompt: "a" }, webhook: "https://app.test/done", policy });
  });
});

describe("a call of the app's own", () => {
  const body = { input: { prompt: "a" } };
  const made = /runsync/;
  const calledWith = async (answer: () => Response | Error, headers?: CallOptions["headers"]) => {
    let tries = 0;
    const gateway = new FakeGateway().on(made, () => (++tries < 2 ? answer() : json({ status: "COMPLETED" })));
    const result = await settled(
      clientOf(gateway).call("/v2/painter/runsync", { method: "POST", body, ...(headers && { headers }) }),
    );
    const keys = gateway.calls(made).map(({ headers }) => headers.get("Idempotency-Key"));
    return { result, calls: keys.length, keys };
  };

  it.each<[string, () => Response | Error]>([
    ["whose answer was lost", broken],
    ["whose answer was lost on the way", () => new Response("<h1>503</h1>", { status: 503 })],
    ["in doubt", () => refusal(502, "UPSTREAM_UNREACHABLE", "The model service stopped answering.")],
    ["late", () => refusal(504, "UPSTREAM_TIMEOUT", "The model service did not answer in time.")],
    ["refused by a worker's own 503", () => refusal(503, "BUSY", "Come later.")],
  ])("that may start something and is %s is made once", async (_name, answer) => {
    const { result, calls } = await calledWith(answer);
    expect(result.status).toBe("rejected");
    expect(calls).toBe(1);
  });

  it.each([
    ["an object", { "idempotency-key": "order-7" }],
    ["pairs", [["Idempotency-Key", "order-7"]] satisfies [string, string][]],
    ["Headers", new Headers({ "Idempotency-Key": "order-7" })],
  ])("is made again under its key, whose headers are %s", async (_, headers) => {
    const keyed = await calledWith(broken, headers);
    expect(keyed).toMatchObject({ result: { status: "fulfilled" }, keys: ["order-7", "order-7"] });
  });

  it("is refused as any other where its headers are none", async () => {
    const calling = clientOf(new FakeGateway()).call("/usage", { headers: { "not a name": "1" } });
    await expect(calling).rejects.toThrow(TypeError);
  });

  it("says its method as HTTP does", async () => {
    const gateway = new FakeGateway().on(/usage/, () => json({}));
    await clientOf(gateway).call("/usage", { method: "patch" });
    expect(gateway.seen[0]?.method).toBe("PATCH");
  });

  it.each([null, 5, "no", { error: null }, { error: {} }])(
    "throws its own error where the answer is %j",
    async (said) => {
      const { result } = await calledWith(() => Response.json(said, { status: 400 }));
      expect(result).toMatchObject({ reason: { code: "NETWORK", message: "The gateway answered 400.", status: 400 } });
    },
  );

  it("tells what the gateway refuses in OpenAI's shape", async () => {
    const error = { code: "INVALID_REQUEST", message: "messages: Too small", type: "invalid_request_error" };
    const answer = () => Response.json({ error }, { status: 400, headers: { "X-Request-Id": "request-1" } });
    const { result } = await calledWith(answer);
    const reason = { code: error.code, message: error.message, status: 400, requestId: "request-1" };
    expect(result).toMatchObject({ reason });
  });

  it.each(["GET", "POST"])("may wait for its answer as long as it likes: %s", async (method) => {
    const late = () => new Promise<Response>((resolve) => setTimeout(resolve, 200_000, json({})));
    const gateway = new FakeGateway().on(/status-sync/, late);
    const answer = await settled(clientOf(gateway).call("/v2/painter/status-sync/1", { method }));
    expect(answer.status).toBe("fulfilled");
    expect(gateway.seen).toHaveLength(1);
  });

  it("ends with its signal", async () => {
    const gateway = new FakeGateway().on(made, () => new Promise<never>(() => {}));
    const left = new AbortController();
    const call = clientOf(gateway).call("/v2/painter/runsync", { method: "POST", body, signal: left.signal });
    const result = settled(call);
    left.abort();
    expect(await result).toMatchObject({ reason: { name: "AbortError" } });
  });
});

it("submits again under the same key where no answer comes in time", async () => {
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const late = new AbortController();
    setTimeout(() => late.abort(), ms);
    return late.signal;
  });
  let tries = 0;
  const gateway = new FakeGateway()
    .on(/events/, () => events([done()]))
    .on(/run$/, () => (++tries < 2 ? new Promise<never>(() => {}) : json({ id: "job-1" })));
  const job = clientOf(gateway).run("painter", { prompt: "a" });
  await vi.advanceTimersByTimeAsync(122_000);
  expect(await job).toMatchObject({ id: "job-1" });
  expect(new Set(gateway.calls(/run$/).map(({ headers }) => headers.get("Idempotency-Key"))).size).toBe(1);
});

it("asks for whatever the caller wants of the gateway", async () => {
  const gateway = new FakeGateway()
    .on(/GET \/images/, () => json({ images: [], cursor: null }))
    .on(/GET \/usage/, () => json({ spent: [] }))
    .on(/estimate/, () => json({ model: "painter", usd: 0.02 }))
    .on(/cancel/, () => json({}));
  const sluice = clientOf(gateway);
  await sluice.gallery();
  await sluice.gallery({ cursor: "1-a", limit: 5 });
  await sluice.usage({ by: "day,model" });
  await sluice.cancel("painter", "job-1");
  expect(await sluice.estimate("painter", { prompt: "a", image: new Blob(["x"], { type: "image/png" }) })).toEqual({
    model: "painter",
    usd: 0.02,
  });
  expect(gateway.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /images",
    "GET /images?cursor=1-a&limit=5",
    "GET /usage?by=day%2Cmodel",
    "POST /v2/painter/cancel/job-1",
    "POST /v2/painter/estimate",
  ]);
  expect(gateway.seen.at(-1)?.body).toEqual({ input: { prompt: "a", image: "data:image/png," } });
});
