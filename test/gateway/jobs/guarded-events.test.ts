// A stream of events that says a key: what of it has left for the client by then.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GuardedEvents } from "../../../src/gateway/jobs/guarded-events.ts";
import { SecretSearch } from "../../../src/wire/secret-search.ts";

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

describe("of a key in the first 16 KB", () => {
  it.each([1, 2, 7, 60, 10_000])("no byte leaves, in pieces of %i", async (size) => {
    const before = `${event.repeat(3)}data: {"error":"`;
    const events = new GuardedEvents(pieces(`${before}${key}"}\n\n${event}`, size), search, undefined);
    const { text, broke } = await read(events.client);
    expect(broke).toBe(true);
    expect(before.startsWith(text)).toBe(true);
    expect(events.copyOver.aborted).toBe(true);
    expect(logged).toHaveBeenCalledOnce();
  });

  it("no byte leaves where it goes on beyond them", async () => {
    const before = "x".repeat(16 * 1024 - 5);
    const events = new GuardedEvents(pieces(`${before}${key}${event}`, 1024), search, undefined);
    expect(await read(events.client)).toEqual({ text: expect.not.stringContaining("sk-"), broke: true });
  });
});

it("a piece is sent on before the next one comes", async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const source = new ReadableStream({
    type: "bytes",
    async start(controller) {
      for await (const piece of readable) controller.enqueue(piece);
    },
  });
  const reader = new GuardedEvents(source, search, undefined).client.getReader();
  const writer = writable.getWriter();
  for (let turn = 0; turn < 3; turn++) {
    await writer.write(encoder.encode(event));
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(event);
  }
  await reader.cancel();
});

it("what is found later in the copy ends the stream", async () => {
  const events = new GuardedEvents(pieces(event.repeat(2000), 4096), search, undefined);
  const reader = events.client.getReader();
  await reader.read();
  events.look(encoder.encode(`data: ${key.slice(0, 9)}`));
  expect(events.copyOver.aborted).toBe(false);
  events.look(encoder.encode(key.slice(9)));
  expect(events.copyOver.aborted).toBe(true);
  reader.releaseLock();
  expect((await read(events.client)).broke).toBe(true);
});

it.each([1, 999, 70_000])("a stream without a key is the same to both readers, in pieces of %i", async (size) => {
  const text = event.repeat(size === 1 ? 20 : 1500);
  const events = new GuardedEvents(pieces(text, size), search, undefined);
  const [client, copy] = await Promise.all([read(events.client), read(events.copy)]);
  expect([client.text === text, copy.text === text, client.broke, copy.broke]).toEqual([true, true, false, false]);
  await events.done;
});

it("a client that leaves ends the upstream's stream", async () => {
  const leaving = new AbortController();
  const events = new GuardedEvents(new ReadableStream({ type: "bytes" }), search, leaving.signal);
  leaving.abort(new Error("left"));
  await events.done;
  expect((await read(events.client)).broke).toBe(true);
});
