// An abort, in every state: the caller has an AbortError at once, and the job is cancelled at the gateway.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSluice, type Sluice } from "../../src/client/index.ts";
import { broken, done, events, FakeGateway, json, status } from "./fake-gateway.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const submitted = /POST \/v2\/painter\/run$/;
const cancelled = /POST \/v2\/painter\/cancel\/job-1$/;

function gatewayOf(): FakeGateway {
  return new FakeGateway()
    .on(submitted, () => json({ id: "job-1", status: "IN_QUEUE" }))
    .on(cancelled, () => json({ id: "job-1", status: "CANCELLED" }))
    .on(/POST \/uploads/, () => json({ id: "u", url: "https://gateway.test/u", put: { url: "/put", headers: {} } }))
    .on(/events/, () => events([status("IN_QUEUE")], "stays"));
}

const clientOf = (gateway: FakeGateway) => createSluice({ url: gateway.url, token: "mine", fetch: gateway.fetch });
const never = () => new Promise<never>(() => {});

/** Aborts once the gateway was asked this; answers with what the caller had of it. */
async function abortAt(gateway: FakeGateway, at: RegExp, input: object = {}): Promise<Error> {
  const left = new AbortController();
  const running = clientOf(gateway).run("painter", { ...input }, { signal: left.signal });
  const error = running.then(
    () => new Error("it went on"),
    (reason) => reason as Error,
  );
  await vi.waitFor(() => expect(gateway.calls(at)).not.toEqual([]));
  left.abort(new Error("the page was left"));
  return error;
}

describe("an abort", () => {
  const states: [string, RegExp, (gateway: FakeGateway) => FakeGateway][] = [
    ["while it waits", /events/, (gateway) => gateway],
    ["while it runs", /events/, (gateway) => gateway.on(/events/, () => events([status("IN_PROGRESS")], "stays"))],
    ["while it is asked about", /status/, (gateway) => gateway.on(/events/, broken).on(/status/, never)],
    [
      "between two questions",
      /status/,
      (gateway) => gateway.on(/events/, broken).on(/status/, () => json({ id: "job-1", status: "IN_QUEUE" })),
    ],
  ];

  it.each(states)("%s cancels the job", async (_name, at, change) => {
    const gateway = change(gatewayOf());
    const aborting = abortAt(gateway, at);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await aborting).toMatchObject({ name: "AbortError", cause: { message: "the page was left" } });
    await vi.waitFor(() => expect(gateway.calls(cancelled)).toHaveLength(1));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(gateway.calls(cancelled)).toHaveLength(1);
  });

  it("while it is submitted cancels the job that comes of it", async () => {
    let answer: (response: Response) => void = () => {};
    const gateway = gatewayOf().on(
      submitted,
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    expect((await abortAt(gateway, submitted)).name).toBe("AbortError");
    expect(gateway.calls(cancelled)).toEqual([]);
    answer(json({ id: "job-1", status: "IN_QUEUE" }));
    await vi.waitFor(() => expect(gateway.calls(cancelled)).toHaveLength(1));
    expect(gateway.calls(/events/)).toEqual([]);
  });

  it("while its lost submission is repeated asks for what came of that, and cancels it", async () => {
    let tries = 0;
    const gateway = gatewayOf().on(submitted, () => (++tries < 3 ? broken() : undefined));
    expect((await abortAt(gateway, submitted)).name).toBe("AbortError");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gateway.calls(cancelled)).toHaveLength(1);
    expect(new Set(gateway.calls(submitted).map(({ headers }) => headers.get("Idempotency-Key"))).size).toBe(1);
  });

  it("before anything was asked asks nothing", async () => {
    const gateway = gatewayOf();
    const running = clientOf(gateway).run("painter", {}, { signal: AbortSignal.abort() });
    await expect(running).rejects.toMatchObject({ name: "AbortError" });
    expect(gateway.seen).toEqual([]);
  });

  it.each([
    ["for its place", /POST \/uploads/],
    ["for its end", /PUT/],
  ])("while a file waits %s submits nothing", async (_name, at) => {
    const gateway = gatewayOf().on(at, never);
    expect((await abortAt(gateway, at, { image: new Blob(["x"]) })).name).toBe("AbortError");
    expect(gateway.calls(submitted)).toEqual([]);
  });

  it("cancels again where the answer to that is lost", async () => {
    let tries = 0;
    const gateway = gatewayOf().on(cancelled, () => (++tries < 3 ? broken() : undefined));
    await abortAt(gateway, /events/);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gateway.calls(cancelled)).toHaveLength(3);
  });

  it("of a question throws too", async () => {
    const gateway = gatewayOf().on(/usage/, never);
    const left = new AbortController();
    const asked = clientOf(gateway).usage({ signal: left.signal });
    left.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
  });

  it.each<[string, (sluice: Sluice, signal: AbortSignal) => Promise<unknown>]>([
    ["a question", (sluice, signal) => sluice.usage({ signal })],
    ["a file", (sluice, signal) => sluice.run("painter", { image: new Blob(["x"]) }, { signal })],
  ])("of %s throws while the app's token never comes", async (_name, ask) => {
    const gateway = gatewayOf();
    const left = new AbortController();
    const asked = ask(createSluice({ url: gateway.url, token: never, fetch: gateway.fetch }), left.signal);
    setImmediate(() => left.abort());
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
    expect(gateway.seen).toEqual([]);
  });

  it("after the end changes nothing", async () => {
    const gateway = gatewayOf().on(/events/, () => events([done()]));
    const left = new AbortController();
    expect((await clientOf(gateway).run("painter", {}, { signal: left.signal })).output).toBe("made");
    left.abort();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gateway.calls(cancelled)).toEqual([]);
  });
});

/** The job behind one that was aborted while it went on; in an object, since a promise would be waited for. */
async function runAfterAborted(gateway: FakeGateway) {
  const sluice = clientOf(gateway);
  const left = new AbortController();
  const first = sluice.run("painter", {}, { signal: left.signal });
  await vi.waitFor(() => expect(gateway.calls(/events/)).toHaveLength(1));
  left.abort();
  await expect(first).rejects.toMatchObject({ name: "AbortError" });
  gateway.on(/events/, () => events([done()]));
  const second = sluice.run("painter", {});
  return { ended: second };
}

it("lets the next job wait until the place of an aborted one is free", async () => {
  let free: (response: Response) => void = () => {};
  const gateway = gatewayOf().on(
    cancelled,
    () =>
      new Promise((resolve) => {
        free = resolve;
      }),
  );
  const second = await runAfterAborted(gateway);
  await vi.advanceTimersByTimeAsync(100);
  expect(gateway.calls(cancelled)).toHaveLength(1);
  expect(gateway.calls(submitted)).toHaveLength(1);
  free(json({}));
  expect((await second.ended).output).toBe("made");
});

it("lets the next job wait ten seconds at most", async () => {
  const gateway = gatewayOf().on(cancelled, never);
  const second = await runAfterAborted(gateway);
  await vi.advanceTimersByTimeAsync(9_900);
  expect(gateway.calls(submitted)).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(200);
  expect((await second.ended).output).toBe("made");
});
