// A client that opens a stream and does not read it. No time passes: the clocks are the test's.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WatchedWriter } from "../../src/http/watched-writer.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => void vi.useRealTimers());

const kilobytes = (count: number) => new Uint8Array(count * 1024);

function stream() {
  const { readable, writable } = new IdentityTransformStream();
  return { reader: readable.getReader({ mode: "byob" }), writer: new WatchedWriter(writable) };
}

describe("a client that reads nothing", () => {
  it("is let go after thirty seconds in which something waits for it", async () => {
    const { writer } = stream();
    const written = writer.write(kilobytes(1000)).catch(() => "let go");
    await vi.advanceTimersByTimeAsync(29_999);
    expect(writer.gone.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(writer.gone.aborted).toBe(true);
    expect(await written).toBe("let go");
  });

  it("is not, while nothing waits for it", async () => {
    const { writer } = stream();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(writer.gone.aborted).toBe(false);
  });
});

it("a client that takes a piece each twenty seconds is slow, and gets all", async () => {
  const { reader, writer } = stream();
  const written = writer.write(kilobytes(64)).then(() => writer.close());
  let bytes = 0;
  for (let isOver = false; !isOver; ) {
    const { value, done } = await reader.read(kilobytes(16));
    bytes += value?.byteLength ?? 0;
    isOver = done;
    if (!done) await vi.advanceTimersByTimeAsync(20_000);
  }
  await written;
  expect(bytes).toBe(64 * 1024);
  expect(vi.getTimerCount()).toBe(0);
});
