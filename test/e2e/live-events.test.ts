// A stream of small events on real sockets, as a model says them: each has come to the client before the next is sent.
import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listenLocally } from "../support/serve-locally.ts";
import { mint } from "./support/faces.ts";
import { type Gateway, startGateway } from "./support/gateway.ts";

/** Beyond the first 16 KB, which are searched piece by piece, and beyond where the runtime passes the rest on. */
const events = 400;
/** A fast stream may come in batches; this is none. */
const everyMs = 3;
const event = (n: number) =>
  `data: {"choices":[{"index":0,"delta":{"content":"word ${n}"}}],"model":"qwen3-32b-awq"}\n\n`;

const streams: ServerResponse[] = [];
const upstream = createServer((asked, answer) => {
  asked.resume().once("end", () => {
    answer.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    streams.push(answer);
  });
});

let server: Gateway;
let token: string;

beforeAll(async () => {
  server = await startGateway({
    UPSTREAM_URL: await listenLocally(upstream),
    UPSTREAM_API_KEY: "key-of-live-events-0123456789",
  });
  token = await mint(server, "ada");
});
afterAll(async () => {
  await server.stop();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});

it("is held back nowhere", async () => {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const asked = request(`${server.url}/v2/qwen3-32b-awq/openai/v1/chat/completions`, { method: "POST", headers });
  asked.end('{"stream":true,"messages":[{"role":"user","content":"hello"}]}');
  const [answer] = await once(asked, "response");
  expect(answer.statusCode).toBe(200);
  const [model] = streams;
  const came = answer.setEncoding("utf8")[Symbol.asyncIterator]();
  let text = "";
  for (let n = 0; n < events; n++) {
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    model?.write(event(n));
    while (!text.endsWith(event(n))) text += (await came.next()).value;
  }
  model?.end("data: [DONE]\n\n");
  for (let next = await came.next(); !next.done; next = await came.next()) text += next.value;
  expect(text.match(/^data: \{/gm)).toHaveLength(events);
});
