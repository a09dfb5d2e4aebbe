// A server that means no good or is none of ours, an app that is careless, and what of it reaches the app: an error that it
// can read, no promise that nobody waits for, and no call without an end.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSluice } from "../../src/client/index.ts";
import { chunk, done, events, FakeGateway, json, refusal, status } from "./fake-gateway.ts";

const unheard: unknown[] = [];
const note = (reason: unknown) => void unheard.push(reason);
beforeEach(() => {
  vi.useFakeTimers();
  unheard.length = 0;
  process.on("unhandledRejection", note);
});
afterEach(async () => {
  vi.useRealTimers();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unheard).toEqual([]);
});

const page = () => new Response("<h1>Welcome to the train</h1>", { headers: { "Content-Type": "text/html" } });
const clientOf = (gateway: FakeGateway) => createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });
const gatewayOf = () =>
  new FakeGateway()
    .on(/run$/, () => json({ id: "job-1", status: "IN_QUEUE" }))
    .on(/cancel/, () => json({}))
    .on(/events/, () => events([status("IN_PROGRESS"), chunk("a"), done()]));

async function settled<T>(work: Promise<T>): Promise<PromiseSettledResult<T>> {
  const all = Promise.allSettled([work]);
  await vi.runAllTimersAsync();
  const [result] = await all;
  return result;
}

describe("a page in place of an answer", () => {
  it("is asked past, and the job is one", async () => {
    const pages = new Set(["run", "events", "status"]);
    const gateway = gatewayOf().on(/status/, () => json({ id: "job-1", status: "COMPLETED", output: "made" }));
    gateway.on(/./, ({ path }) => {
      const kind = path.split("/")[3] ?? "";
      return pages.delete(kind) ? page() : undefined;
    });
    expect(await settled(clientOf(gateway).run("painter", {}))).toMatchObject({ value: { output: "made" } });
    const keys = gateway.calls(/run$/).map(({ headers }) => headers.get("Idempotency-Key"));
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  });

  it("that stays is told as what it is", async () => {
    const gateway = new FakeGateway().on(/./, page);
    const reason = { name: "SluiceError", code: "NETWORK", cause: expect.any(SyntaxError) };
    expect(await settled(clientOf(gateway).usage())).toMatchObject({ reason });
    expect(gateway.seen).toHaveLength(5);
  });
});

it("an event that is no JSON is a stream that broke", async () => {
  const mangled = () => new Response("event: status\ndata: {IN_PROG\n\n");
  const gateway = gatewayOf()
    .on(/events/, mangled)
    .on(/status/, () => json({ id: "job-1", status: "COMPLETED", output: "made" }));
  expect(await settled(clientOf(gateway).run("painter", {}))).toMatchObject({ value: { output: "made" } });
});

it("an id stays within its route", async () => {
  const id = "../../../images/key?x=#";
  const gateway = gatewayOf().on(/run$/, () => json({ id, status: "IN_QUEUE" }));
  expect((await settled(clientOf(gateway).run("pain/ter", {}))).status).toBe("fulfilled");
  expect(gateway.seen.at(-1)?.path).toBe(`/v2/pain%2Fter/events/${encodeURIComponent(id)}`);
});

it.each(["Wed, 21 Oct 2026 07:28:00 GMT", "0", "-5", "soon"])(
  "Retry-After: %s is no reason to ask without a pause",
  async (when) => {
    const gateway = new FakeGateway().on(/usage/, () => refusal(503, "DOWN", "It is down.", { "Retry-After": when }));
    const asked = Promise.allSettled([clientOf(gateway).usage()]);
    await vi.advanceTimersByTimeAsync(200);
    expect(gateway.seen).toHaveLength(1);
    await vi.runAllTimersAsync();
    expect(gateway.seen).toHaveLength(5);
    await asked;
  },
);

it("tokens that have ended whenever they come are renewed once a call", async () => {
  let asked = 0;
  const ended = () => ({ token: `token-${++asked}`, expiresAt: new Date(Date.now() - 3_600_000).toISOString() });
  const gateway = new FakeGateway().on(/./, () => refusal(401, "TOKEN_EXPIRED", "The token has expired."));
  const sluice = createSluice({ url: gateway.url, token: ended, fetch: gateway.fetch });
  expect(await settled(sluice.run("painter", {}))).toMatchObject({ reason: { code: "TOKEN_EXPIRED" } });
  expect([asked, gateway.seen.length]).toEqual([2, 2]);
});

it.each([-3_600_000, 3_600_000])("a clock that is %i ms off costs one session", async (off) => {
  const gateway = new FakeGateway()
    .on(/usage/, () => json({}))
    .on(/sessions/, () => json({ token: "one", expiresAt: new Date(Date.now() + 3_600_000 + off).toISOString() }));
  const sluice = createSluice({ url: gateway.url, fetch: gateway.fetch });
  for (let n = 0; n < 5; n++) await sluice.usage();
  expect(gateway.calls(/sessions/)).toHaveLength(1);
});

describe("a visitor's storage", () => {
  const gateway = () =>
    new FakeGateway()
      .on(/usage/, () => json({ plan: "free" }))
      .on(/sessions/, () => json({ token: "one", expiresAt: new Date(Date.now() + 3_600_000).toISOString() }));

  it.each(["undefined", "{", "7", "null", '{"token":7}'])("that holds %s is begun anew", async (kept) => {
    const storage = { getItem: () => kept, setItem: vi.fn() };
    const sluice = createSluice({ ...gateway(), url: "https://gateway.test", storage, fetch: gateway().fetch });
    expect(await sluice.usage()).toEqual({ plan: "free" });
    expect(storage.setItem).toHaveBeenCalledOnce();
  });

  it("that the browser forbids is done without", async () => {
    const forbid = () => {
      throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
    };
    const storage = { getItem: forbid, setItem: forbid };
    const { fetch } = gateway();
    expect(await createSluice({ url: "https://gateway.test", storage, fetch }).usage()).toEqual({ plan: "free" });
  });
});

it("input that is no JSON is the caller's fault at once, and no network's", async () => {
  const gateway = gatewayOf();
  const running = clientOf(gateway).run("painter", { seed: 10n });
  expect(await settled(running)).toMatchObject({ reason: { name: "TypeError" } });
  expect(gateway.seen).toEqual([]);
});

it("what says itself how it is written as JSON is written so: a date, a URL", async () => {
  const gateway = gatewayOf();
  await settled(clientOf(gateway).run("painter", { at: new Date(0), image: new URL("https://a.test/b.png") }));
  const input = { at: "1970-01-01T00:00:00.000Z", image: "https://a.test/b.png" };
  expect(gateway.calls(/run$/)[0]?.body).toEqual({ input });
});

describe("a signal that was aborted before", () => {
  it.each(["run", "submit", "follow", "usage", "upload", "estimate"] as const)("stops %s", async (what) => {
    const gateway = gatewayOf();
    const sluice = clientOf(gateway);
    const options = { signal: AbortSignal.abort() };
    const calls = {
      run: () => sluice.run("painter", {}, options),
      submit: () => sluice.submit("painter", {}, options),
      follow: () => sluice.follow("painter", "job-1", options),
      usage: () => sluice.usage(options),
      upload: () => sluice.upload(new Blob([]), options),
      estimate: () => sluice.estimate("painter", {}, options),
    };
    expect(await settled<unknown>(calls[what]())).toMatchObject({ reason: { name: "AbortError" } });
    expect(gateway.seen.map(({ path }) => path)).toEqual(what === "follow" ? ["/v2/painter/cancel/job-1"] : []);
  });
});

describe("what a listener throws is the caller's", () => {
  const listeners = ["onState", "onChunk", "onProgress", "onUpload", "onGap"] as const;
  it.each(listeners)("from %s", async (name) => {
    const gateway = gatewayOf()
      .on(/uploads/, () => json({ id: "u", url: "https://gateway.test/u", put: { url: "/put", headers: {} } }))
      .on(/PUT/, () => new Response(null, { status: 201 }))
      .on(/events/, () => events([status("IN_PROGRESS"), ["progress", 1], chunk("a")]));
    const mine = () => {
      throw new RangeError("mine");
    };
    const running = clientOf(gateway).run("painter", { image: new Blob([]) }, { [name]: mine });
    expect(await settled(running)).toMatchObject({ reason: { name: "RangeError", message: "mine" } });
  });
});

it("an empty file is refused in the gateway's words, and nothing is submitted", async () => {
  const gateway = gatewayOf().on(/uploads/, () => refusal(400, "INVALID_REQUEST", "bytes: expected at least 1"));
  const running = clientOf(gateway).run("painter", { image: new File([], "a.png") });
  expect(await settled(running)).toMatchObject({ reason: { message: "bytes: expected at least 1" } });
  expect(gateway.calls(/run$/)).toEqual([]);
});
