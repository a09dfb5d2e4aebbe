// A source of media that sends a part and then nothing more is left; a client that reads slowly is not taken for one.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { png, Studio, World, whileTimePasses } from "./studio.ts";

let world: World;
let studio: Studio;
beforeEach(() => {
  world = new World();
  studio = new Studio();
});
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** So many bytes of a picture, and then nothing. */
function stalling(bytes: number, left: () => void): ReadableStream<Uint8Array> {
  const begun = new Uint8Array(bytes);
  begun.set(png.subarray(0, bytes));
  return new ReadableStream({
    type: "bytes",
    start: (controller) => {
      if (bytes > 0) controller.enqueue(begun);
    },
    cancel: left,
  });
}

async function read({ body }: Response): Promise<{ bytes: number; isWhole: boolean }> {
  let bytes = 0;
  try {
    for await (const part of body ?? []) bytes += part.byteLength;
    return { bytes, isWhole: true };
  } catch {
    return { bytes, isWhole: false };
  }
}

const size = 1_000_000;
const whole = { headers: { "Content-Length": String(size) } };
const part = { status: 206, headers: { "Content-Range": `bytes 0-${size - 1}/${size}` } };

it.each<[what: string, bytes: number, init: ResponseInit, range: string | undefined]>([
  ["100 bytes of what says its size", 100, whole, undefined],
  ["a half of what says its size", size / 2, whole, undefined],
  ["100 bytes of what does not say its size", 100, {}, undefined],
  ["a half of what does not say its size", size / 2, {}, undefined],
  ["100 bytes of a part", 100, part, "bytes=0-"],
  ["nothing of a part", 0, part, "bytes=0-"],
])("fault M12: a source that stalls after %s is left, and nothing of it is kept", async (_, bytes, init, range) => {
  const { path } = await studio.link(await studio.token("ada"));
  let left = 0;
  world.elsewhere = ({ headers }) =>
    headers.get("Range") === "bytes=0-15"
      ? new Response(png.slice(0, 16), { status: 206 })
      : new Response(
          stalling(bytes, () => void left++),
          init,
        );
  const puts = vi.spyOn(caches.default, "put");
  const asked = () =>
    studio.ask(path, undefined, "GET", { untouched: true, ...(range !== undefined && { headers: { Range: range } }) });
  const got = await whileTimePasses(async () => read(await asked()));
  expect(got).toEqual({ bytes, isWhole: false });
  await vi.waitFor(() => expect(left).toBe(world.count("GET https://cdn") - (range === undefined ? 0 : 1)));
  await Promise.allSettled(puts.mock.results.map(({ value }) => value));
  await vi.waitFor(async () => expect(await caches.default.match(`https://sluice.test${path}`)).toBeUndefined(), 5000);
});

it("fault M12: a client that reads slowly gets all of it", async () => {
  const { path } = await studio.link(await studio.token("ada"));
  const file = new Uint8Array(size);
  file.set(png);
  world.elsewhere = () => new Response(file, whole);
  const { body } = await studio.ask(path, undefined, "GET", { untouched: true });
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.byteLength;
    await vi.advanceTimersByTimeAsync(60_000);
  }
  expect(bytes).toBe(size);
});
