// A stream of events that says a key: what of it has left for the client by then.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GuardedEvents } from "../../../src/gateway/jobs/guarded-events.ts";
import { StreamUsage } from "../../../src/gateway/jobs/stream-usage.ts";
import { SecretSearch } from "../../../src/json/secret-search.ts";

const key = "sk-a-key-of-the-upstream-0123456789";
const search = new SecretSearch([key]);
const event = `data: {"choices":[{"delta":{"content":"a word"}}]}\n\n`;
const encoder = new TextEncoder();

const logged = vi.fn();

beforeEach(() => {
  logged.mockClear();
  vi.spyOn(console, "error").mockImplementation(logged);
});
afterEach(() => vi.restoreAllMocks());

function pieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = encoder.encode(text);
  let at = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      controller.enqueue(bytes.slice(at, at + size));
      at += size;
      if (at >= bytes.length) controller.close();
    },
  });
}

/** All that came until the stream ended or broke. */
async function read(stream: ReadableStream<Uint8Array>): Promise<{ text: string; broke: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of stream) text += decoder.decode(piece, { stream: true });
    return { text, broke: false };
  } catch {
    return { text, broke: true };
  }
}

/** What the client got, and what was seen: a stream that was cut is not kept. */
async function pass(source: ReadableStream<Uint8Array>) {
  const events = new GuardedEvents(source, search, undefined);
  const seen = new StreamUsage(10_000_000);
  const [client] = await Promise.all([read(events.client), events.read(seen)]);
  await events.done;
  const kept = seen.kept();
  return { ...client, kept: kept && new TextDecoder().decode(kept) };
}

describe("of a key in the first 16 KB", () => {
  it.each([1, 2, 7, 60, 10_000])("no byte leaves, in pieces of %i", async (size) => {
    const before = `${event.repeat(3)}data: {"error":"`;
    const { text, broke, kept } = await pass(pieces(`${before}${key}"}\n\n${event}`, size));
    expect(broke).toBe(true);
    expect(before.startsWith(text)).toBe(true);
    expect(kept).toBeUndefined();
    expect(logged).toHaveBeenCalledOnce();
  });

  it("no byte leaves where it goes on beyond them", async () => {
    const before = "x".repeat(16 * 1024 - 5);
    const { text, broke } = await pass(pieces(`${before}${key}${event}`, 1024));
    expect(broke).toBe(true);
    expect(text).not.toContain("sk-");
  });
});

it("of a key beyond them no byte leaves, as long as the pieces are large", async () => {
  const before = event.repeat(40_000);
  const { text, broke, kept } = await pass(pieces(`${before}${key}${event}`, 50_000));
  expect(broke).toBe(true);
  expect(before.startsWith(text)).toBe(true);
  expect(text.length).toBeGreaterThan(before.length - 50_000);
  expect(kept).toBeUndefined();
});

/** An endless stream of events, but for one. The clock moves between two of them. */
function live(everyMs: number, except: { readonly at: number; readonly text: string }) {
  let sent = 0;
  return new ReadableStream({
    type: "bytes",
    // Timers run between its pieces, as between those of a network: else nobody would ever look at the copy.
    async pull(controller) {
      if (sent % 10 === 0) await scheduler.wait(0);
      vi.setSystemTime(Date.now() + everyMs);
      controller.enqueue(encoder.encode(sent === except.at ? except.text : event));
      sent += 1;
    },
  });
}

describe("of small pieces", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
  afterEach(() => void vi.useRealTimers());

  it("a key beyond them ends the stream, and is logged", async () => {
    const { broke, kept } = await pass(live(5, { at: 500, text: key }));
    expect(broke).toBe(true);
    expect(kept).toBeUndefined();
    expect(logged).toHaveBeenCalledOnce();
  });

  it("no byte of a key leaves, as long as they come fast", async () => {
    const { text, broke, kept } = await pass(live(0, { at: 500, text: key }));
    expect(broke).toBe(true);
    expect(event.repeat(500).startsWith(text)).toBe(true);
    expect(kept).toBeUndefined();
    expect(logged).toHaveBeenCalledOnce();
  });

  it.each([
    ["a short wait", 10, true],
    ["a pause", 50, false],
  ])("those of a fast stream come together, and after %s of %d ms one by one", async (_, ms, onlyForNow) => {
    const { send, next, until } = sentByHand();
    send(1000);
    const sizes = await until(900);
    expect(new Set(sizes.slice(0, 300))).toEqual(new Set([event.length]));
    expect(Math.min(...sizes.slice(-5))).toBeGreaterThanOrEqual(4 * 1024);
    const rest = until(1100);
    // By now less than 4 KB wait for company, which comes late.
    await scheduler.wait(0);
    vi.setSystemTime(Date.now() + ms);
    send(100);
    await rest;
    for (let turn = 0; turn < 20; turn++) {
      send(1);
      expect(await next()).toBe(event.length);
    }
    send(500);
    const more = await until(1500);
    expect(Math.max(...more) >= 4 * 1024).toBe(onlyForNow);
  });
});

/** Events that come when the test says so, the sizes of what the client gets, and of all until it has so many events. */
function sentByHand() {
  let asked = Promise.withResolvers<void>();
  let waiting = 0;
  const send = (count: number) => {
    waiting += count;
    asked.resolve();
  };
  const source = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      if (waiting === 0) await asked.promise;
      asked = Promise.withResolvers();
      waiting -= 1;
      controller.enqueue(encoder.encode(event));
    },
  });
  const events = new GuardedEvents(source, search, undefined);
  void events.read(new StreamUsage());
  const reader = events.client.getReader({ mode: "byob" });
  let gotBytes = 0;
  const next = async () => {
    const size = (await reader.read(new Uint8Array(64 * 1024))).value?.byteLength ?? 0;
    gotBytes += size;
    return size;
  };
  const until = async (count: number) => {
    const sizes: number[] = [];
    while (gotBytes < count * event.length) sizes.push(await next());
    return sizes;
  };
  return { send, next, until };
}

it("a piece is sent on before the next one comes", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const source = new ReadableStream({
    type: "bytes",
    async start(controller) {
      for await (const piece of readable) controller.enqueue(piece);
    },
  });
  const events = new GuardedEvents(source, search, undefined);
  void events.read(new StreamUsage());
  const reader = events.client.getReader();
  const writer = writable.getWriter();
  for (let turn = 0; turn < 3; turn++) {
    await writer.write(encoder.encode(event));
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(event);
  }
  await reader.cancel();
});

it.each([7, 999, 70_000])("a stream without a key is the same to both readers, in pieces of %i", async (size) => {
  const text = event.repeat(size === 7 ? 500 : 1500);
  const { text: got, broke, kept } = await pass(pieces(text, size));
  expect([got === text, kept === text, broke]).toEqual([true, true, false]);
});

it("a client that leaves ends the upstream's stream", async () => {
  const leaving = new AbortController();
  const events = new GuardedEvents(new ReadableStream({ type: "bytes" }), search, leaving.signal);
  const reading = events.read(new StreamUsage());
  leaving.abort(new Error("left"));
  await Promise.all([reading, events.done]);
  expect((await read(events.client)).broke).toBe(true);
});

it.each([
  ["small", 500],
  ["large", 20_000],
])(
  "a client that takes no more ends the upstream's stream of %s pieces, though nobody says that it left",
  async (_, size) => {
    const cancelled = vi.fn();
    const piece = encoder.encode("x".repeat(size));
    const source = new ReadableStream({
      type: "bytes",
      pull: (controller) => controller.enqueue(piece.slice()),
      cancel: cancelled,
    });
    const events = new GuardedEvents(source, search, new AbortController().signal);
    const reading = events.read(new StreamUsage());
    const reader = events.client.getReader();
    for (let got = 0; got < 200_000; ) got += (await reader.read()).value?.byteLength ?? 0;
    await reader.cancel("left");
    await Promise.all([reading, events.done]);
    expect(cancelled).toHaveBeenCalledOnce();
  },
);

it("a client that leaves, and may come back, leaves all of it to be read", async () => {
  const text = event.repeat(3000);
  const events = new GuardedEvents(pieces(text, 60_000), search, undefined);
  const seen = new StreamUsage(10_000_000);
  const reading = events.read(seen);
  const reader = events.client.getReader();
  await reader.read();
  await reader.cancel("left");
  await reading;
  expect(new TextDecoder().decode(seen.kept())).toBe(text);
});
