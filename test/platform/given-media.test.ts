// Files that inputs lead to, as built-in workers read them: few at a time, and nobody waits for ever.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { GivenMedia } from "../../src/platform/workers/given-media.ts";

const origin = "https://sluice.test";
/** Requests to foreign hosts that wait for their answer. */
let asked: ((response: Response) => void)[];
const sources = { origin, exports: {} as Cloudflare.Exports };
const length = async (bytes: Uint8Array) => bytes.length;
/** Until everything that does not wait for an answer has happened. */
const settled = () => new Response("x").text();

beforeEach(() => {
  asked = [];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.spyOn(globalThis, "fetch").mockImplementation(() => new Promise((resolve) => asked.push(resolve)));
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("reads three at a time: the next one begins when one was used", async () => {
  const media = new GivenMedia();
  const uses = Array.from({ length: 5 }, (_, n) => media.use(`https://cdn.example.net/${n}.png`, sources, length));
  await settled();
  expect(asked).toHaveLength(3);
  asked[0]?.(new Response("four"));
  expect(await uses[0]).toBe(4);
  await settled();
  expect(asked).toHaveLength(4);
  for (const answer of asked.slice(1)) answer(new Response("four"));
  await uses[3];
  await settled();
  asked[4]?.(new Response("four"));
  expect(await Promise.all(uses)).toEqual([4, 4, 4, 4, 4]);
});

it("goes on without a file whose turn does not come in time, and loses no place by it", async () => {
  const media = new GivenMedia();
  const use = (n: number) => media.use(`https://cdn.example.net/${n}.png`, sources, length);
  const first = [use(0), use(1), use(2)];
  const late = use(3);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await late).toBeUndefined();
  for (const answer of asked) answer(new Response("four"));
  expect(await Promise.all(first)).toEqual([4, 4, 4]);
  const next = [use(4), use(5), use(6)];
  await settled();
  expect(asked).toHaveLength(6);
  for (const answer of asked.slice(3)) answer(new Response("four"));
  expect(await Promise.all(next)).toEqual([4, 4, 4]);
});

it("frees its place where the file is not to be had, or its use fails", async () => {
  const media = new GivenMedia();
  const fails = () => Promise.reject(new Error("broken"));
  for (let n = 0; n < 10; n++) {
    const use = media.use("https://cdn.example.net/a.png", sources, n % 2 === 0 ? fails : length);
    await settled();
    asked.at(-1)?.(n % 2 === 0 ? new Response("four") : new Response("no", { status: 500 }));
    expect(await use).toBeUndefined();
  }
  expect(asked).toHaveLength(10);
});

it("asks the gateway itself for files alone, and nobody else for what only looks like ours", async () => {
  const own: string[] = [];
  const gateway = {
    fetch: async ({ url }: Request) => {
      own.push(new URL(url).pathname);
      return new Response("four");
    },
  };
  const inside = { origin, exports: { default: gateway } as unknown as Cloudflare.Exports };
  const media = new GivenMedia();
  const files = ["/uploads/a-b.png", "/images/a-b", "/platform/media/a.png"];
  for (const path of files) expect(await media.use(`${origin}${path}`, inside, length)).toBe(4);
  const others = [
    "/admin/users/ada",
    "/uploads/../admin/users",
    "/uploads/%2e%2e/healthz",
    "/uploads/a/b",
    "/uploads/",
    "/",
  ];
  for (const path of others) expect(await media.use(`${origin}${path}`, inside, length)).toBeUndefined();
  for (const url of [
    "http://sluice.test/uploads/a.png",
    "https://sluice.test:444/uploads/a.png",
    "file:///uploads/a",
    "x",
  ])
    expect(await media.use(url, inside, length)).toBeUndefined();
  expect(own).toEqual(files);
  expect(asked).toEqual([]);
});
