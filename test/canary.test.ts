// The canary hears a key wherever it may come out: without that, its silence over the whole run would mean nothing.
import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { Outbox } from "../src/gateway/quota/outbox.ts";
import { hear, overheard, takeFound, upstreamKey } from "./support/canary.ts";
import { watchLog } from "./support/log-lines.ts";

/** A body in pieces. */
function pieces(...texts: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const text of texts) controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
}
const cut = upstreamKey.length - 1;

it.each([
  ["a body", () => new Response(`a ${upstreamKey} b`)],
  ["two pieces of a body", () => new Response(pieces(upstreamKey.slice(0, cut), upstreamKey.slice(cut)))],
  ["a header", () => new Response("", { headers: { "X-Said": upstreamKey } })],
])("hears it in %s", async (_name, answer) => {
  await overheard("a test", answer()).text();
  expect(takeFound()).toEqual([expect.stringMatching(/a test: .*<the key>/)]);
});

it.each([
  ["escaped", upstreamKey.replace("k", "\\u006b")],
  ["escaped twice", upstreamKey.replace("k", "\\\\u006B")],
  ["in percents", upstreamKey.replace("-", "%2d")],
  ["in base64", btoa(`user:${upstreamKey}`)],
])("hears it %s", (_name, spelled) => {
  hear("a test", `{"said":"${spelled}"}`);
  expect(takeFound()).not.toEqual([]);
});

it("hears it in what is kept in KV", async () => {
  await env.IMAGES.put("test", JSON.stringify({ debug: upstreamKey }));
  expect(takeFound()).toEqual([expect.stringMatching(/^KV, under test,/)]);
});

it("hears it in what a webhook is told", () => {
  const add = () => Outbox.prototype.add.call({} as Outbox, "admission", "https://x", upstreamKey, 0);
  expect(add, "there is nothing to write to").toThrow(TypeError);
  expect(takeFound()).toEqual([expect.stringMatching(/^a webhook's body: /)]);
});

it("hears it in a body that breaks", async () => {
  const breaks = new ReadableStream({ pull: (controller) => controller.error(new Error(`lost ${upstreamKey}`)) });
  await expect(overheard("a test", new Response(breaks)).text()).rejects.toThrow("lost");
  expect(takeFound()).not.toEqual([]);
});

it("hears it in the log, whoever listens there too", () => {
  const { text } = watchLog();
  console.error(JSON.stringify({ key: upstreamKey }));
  expect(text()).toContain(upstreamKey);
  expect(takeFound()).toEqual([expect.stringMatching(/console\.error/)]);
});

it("changes nothing of what it hears, and reads no further than its reader", async () => {
  let pulled = 0;
  let left: unknown;
  const source = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => controller.enqueue(new Uint8Array([++pulled])),
      cancel(reason) {
        left = reason;
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { "Content-Length": "9" };
  const response = overheard("a test", new Response(source, { status: 206, headers }));
  expect([response.status, response.headers.get("Content-Length")]).toEqual([206, "9"]);
  const reader = response.body?.getReader();
  expect((await reader?.read())?.value).toEqual(new Uint8Array([1]));
  expect(pulled).toBe(1);
  await reader?.cancel("enough");
  expect(left).toBe("enough");
  hear("a test", "nothing");
  expect(takeFound()).toEqual([]);
});
