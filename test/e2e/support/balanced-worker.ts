// A worker of a load-balancing endpoint, by one of two frameworks: `node balanced-worker.ts hono|plain <port>`.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { gzipSync } from "node:zlib";
import { Hono } from "hono";

const [framework, port] = process.argv.slice(2);

const app = new Hono();
app.get("/ping", (c) => c.body(null, 200));
app.all("/echo/*", async (c) => {
  const headers = { "Set-Cookie": "worker=1" };
  const { pathname, search } = new URL(c.req.url);
  const body = await c.req.text();
  return c.json(
    { framework, method: c.req.method, path: pathname + search, headers: c.req.header(), body },
    200,
    headers,
  );
});
app.post("/double", (c) => {
  const doubled = new TransformStream<Uint8Array, Uint8Array>({
    transform: (piece, to) => to.enqueue(Buffer.concat([piece, piece])),
  });
  return new Response(c.req.raw.body?.pipeThrough(doubled));
});
app.post("/count", async (c) => c.text(String((await c.req.arrayBuffer()).byteLength)));
app.get("/never", () => new Promise<Response>(() => {}));

/** Hono answers Requests; this is what hands it those of Node. */
async function byHono(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { method = "GET", url, headers } = incoming;
  const body = method === "GET" || method === "HEAD" ? null : (Readable.toWeb(incoming) as ReadableStream);
  const init = { method, headers: headers as Record<string, string>, body, duplex: "half" };
  const response = await app.fetch(new Request(`http://worker${url}`, init as RequestInit));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) Readable.fromWeb(response.body as NodeStream).pipe(outgoing);
  else outgoing.end();
}

/** How each body of `/hear` ended. */
const heard: ("whole" | "broken")[] = [];

function byHand(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url = "/", headers } = incoming;
  if (url === "/ping") return void outgoing.end();
  if (url === "/zipped") {
    const zipped = gzipSync("zipped ".repeat(1000));
    return void outgoing.writeHead(200, { "Content-Encoding": "gzip", "Content-Length": zipped.length }).end(zipped);
  }
  if (url === "/double")
    return void incoming
      .on("data", (piece) => outgoing.write(Buffer.concat([piece, piece])))
      .on("end", () => outgoing.end());
  if (url === "/heard") return void outgoing.end(JSON.stringify(heard));
  if (url === "/hear") {
    incoming.on("close", () => heard.push(incoming.complete ? "whole" : "broken")).resume();
    return void incoming.on("end", () => outgoing.end("heard"));
  }
  let body = "";
  incoming.setEncoding("utf8").on("data", (piece) => {
    body += piece;
  });
  incoming.on("end", () => {
    const said = JSON.stringify({ framework, method, path: url, headers, body });
    outgoing.writeHead(200, { "Content-Type": "application/json", "Set-Cookie": "worker=1" }).end(said);
  });
}

const server = createServer(framework === "hono" ? (request, response) => void byHono(request, response) : byHand);
server.listen(Number(port), "127.0.0.1", () => console.log("listens"));
