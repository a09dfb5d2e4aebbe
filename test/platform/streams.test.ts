// Streaming: chunks are split, handed out once, held for, and end with an answer that repeats.
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import { split } from "../../src/platform/queue/chunks.ts";
import { emptyStorage } from "../support/empty-storage.ts";
import { endpoint, noon, pass, setTime } from "./support/endpoint.ts";

beforeEach(() => setTime(noon));
afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

const decode = (bytes: Uint8Array) =>
  JSON.parse(new TextDecoder().decode(bytes)) as { output: string; metrics?: object };
const most = limits.streamChunkBytes;

describe("a chunk", () => {
  it.each<[string, unknown, object]>([
    ["a text", "one", { output: "one" }],
    ["a list", [1], { output: [1] }],
    ["nothing", null, { output: null }],
    [
      "what measures itself",
      { text: ["a"], metrics: { running: 1 } },
      { output: { text: ["a"] }, metrics: { running: 1 } },
    ],
    ["what measures nothing", { metrics: null }, { output: { metrics: null } }],
    ["a list of that name", { metrics: [1] }, { output: { metrics: [1] } }],
  ])("of %s is one item", (_, output, item) => {
    expect(split(output).map(decode)).toEqual([item]);
  });

  it.each<[string, string]>([
    ["plain", "x".repeat(3 * most)],
    ["every character escaped", "\u0001".repeat(most)],
    ["characters of two halves", "😀".repeat(most)],
  ])("that is too large becomes several: %s", (_, text) => {
    const items = split(text);
    expect(items.length).toBeGreaterThan(1);
    expect(Math.max(...items.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(most);
    expect(items.map((item) => decode(item).output).join("") === text).toBe(true);
  });

  it("of the very limit stays whole, one more byte splits it", () => {
    const frame = '{"output":""}'.length;
    expect(split("x".repeat(most - frame))).toHaveLength(1);
    expect(split("x".repeat(most - frame + 1)).length).toBeGreaterThan(1);
  });

  it("that is a large value becomes texts of its JSON", () => {
    const value = { list: ["x".repeat(most)] };
    const text = split(value).map((item) => decode(item).output);
    expect(JSON.parse(text.join(""))).toEqual(value);
  });
});

describe("a stream", () => {
  it("hands each chunk out once, then ends with an answer that repeats", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.chunk(id, "a");
    await e.chunk(id, "b");
    const ab = [{ output: "a" }, { output: "b" }];
    expect(await e.get(`stream/${id}`)).toEqual({ status: "IN_PROGRESS", stream: ab });
    await e.chunk(id, "c");
    await e.done(id, { output: [] });
    expect(await e.post(`stream/${id}`)).toEqual({ status: "COMPLETED", stream: [{ output: "c" }] });
    for (const _ of [1, 2]) expect(await e.get(`stream/${id}`)).toEqual({ status: "COMPLETED", stream: [] });
  });

  it("is a bare list where that is asked for", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.chunk(id, { text: ["a"], metrics: { running: 1 } });
    expect(await e.get(`stream/${id}?format=array`)).toEqual([{ output: { text: ["a"] }, metrics: { running: 1 } }]);
  });

  it("is held until there is a chunk", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    const held = e.get(`stream/${id}`);
    await e.chunk(id, "late");
    expect(await held).toEqual({ status: "IN_PROGRESS", stream: [{ output: "late" }] });
  });

  it("is held until the end, or until the time is over", async () => {
    const e = endpoint();
    const id = await e.submit();
    expect(await e.queue().stream(id, 1, "t")).toEqual({ status: "IN_QUEUE", items: [] });
    const held = e.get(`stream/${id}`);
    await e.post(`cancel/${id}`);
    expect(await held).toEqual({ status: "CANCELLED", stream: [] });
  });

  it.each([
    ["plain", "x", 3],
    ["escaped", "\u0001", 16],
    ["of several bytes", "€", 8],
    ["in two halves", "😀", 6],
  ])("has as few chunks as a limit of 1 MB allows (%s)", async (_, character, count) => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    const text = character.repeat(2_500_000 / character.length);
    await e.chunk(id, text);
    await e.done(id, { output: [] });
    const outputs: string[] = [];
    for (let status = ""; status !== "COMPLETED"; ) {
      const part = await e.read<{ status: string; stream: { output: string }[] }>("GET", `stream/${id}`);
      outputs.push(...part.stream.map(({ output }) => output));
      status = part.status;
    }
    expect(outputs.join("")).toBe(text);
    for (const output of outputs) expect(JSON.stringify({ output }).length).toBeLessThanOrEqual(most);
    expect(outputs).toHaveLength(count);
  });

  it("says that it goes on while there is more than one answer holds", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    for (let at = 0; at < 6; at++) await e.chunk(id, String(at).repeat(900_000));
    await e.done(id, { output: [] });
    const first = await e.read<{ status: string; stream: { output: string }[] }>("GET", `stream/${id}`);
    const rest = await e.read<{ status: string; stream: { output: string }[] }>("GET", `stream/${id}`);
    expect([first.status, rest.status]).toEqual(["IN_PROGRESS", "COMPLETED"]);
    expect([...first.stream, ...rest.stream].map(({ output }) => output[0]).join("")).toBe("012345");
  });

  it("survives the object, and forgets what a lost worker streamed", async () => {
    const e = endpoint();
    const id = await e.submit();
    await e.take();
    await e.chunk(id, "a");
    await evictDurableObject(e.queue());
    expect(await e.get(`stream/${id}`)).toMatchObject({ stream: [{ output: "a" }] });
    await e.chunk(id, "b");
    pass(31_000);
    await e.ring();
    await e.take("w2");
    await e.chunk(id, "again", "w2");
    expect(await e.get(`stream/${id}`)).toMatchObject({ stream: [{ output: "again" }] });
  });
});
