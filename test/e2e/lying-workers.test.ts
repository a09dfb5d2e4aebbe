// A worker that speaks HTTP as it likes: its callers get an answer or a refusal, and their places among the jobs back.
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import { Server } from "../support/serve.ts";
import { testSettings } from "../support/settings.ts";
import { exchange } from "./support/exchange.ts";

const cookie = "Set-Cookie: a=b\r\n";
const fine = `HTTP/1.1 200 OK\r\n${cookie}Content-Length: 2\r\n\r\nok`;
const chunked = `HTTP/1.1 200 OK\r\n${cookie}Transfer-Encoding: chunked\r\n`;
const stated = (length: string, body: string) => `HTTP/1.1 200 OK\r\n${cookie}Content-Length: ${length}\r\n\r\n${body}`;
const withStatus = (status: string) => `HTTP/1.1 ${status}\r\n${cookie}Content-Length: 2\r\n\r\nok`;

const answers: Record<string, string> = {
  fine,
  "early-hints": `HTTP/1.1 103 Early Hints\r\n${cookie}Link: </x>\r\n\r\n${fine}`,
  continue: `HTTP/1.1 100 Continue\r\n\r\n${fine}`,
  switching: `HTTP/1.1 101 Switching Protocols\r\n${cookie}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
  "longer-than-stated": stated("2", `ok${fine}`),
  "shorter-than-stated": stated("100", "ok"),
  "less-than-nothing": stated("-1", "ok"),
  "no-number": stated("0x2", "ok"),
  "far-more-than-there-is": stated("99999999999999999999999", "ok"),
  "two-lengths": `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nok`,
  "length-and-chunks": `${chunked}Content-Length: 5\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  "cookie-in-trailer": `${chunked}Trailer: Set-Cookie\r\n\r\n2\r\nok\r\n0\r\n${cookie}\r\n`,
  "no-last-chunk": `${chunked}\r\n2\r\nok\r\n`,
  "broken-chunk": `${chunked}\r\nzz\r\nok\r\n`,
  "no-content-with-some": withStatus("204 No Content"),
  "reset-with-some": withStatus("205 Reset Content"),
  "not-modified-with-some": withStatus("304 Not Modified"),
  "status-999": withStatus("999 Nine"),
  "status-99": withStatus("99 Low"),
  "status-000": withStatus("000 None"),
  "no-http": "hello\r\n\r\n",
  silence: "",
  "null-in-header": `HTTP/1.1 200 OK\r\nX-A: \0\r\nContent-Length: 2\r\n\r\nok`,
  "odd-reason": `HTTP/1.1 200 \u00ff\u0001\r\nContent-Length: 2\r\n\r\nok`,
};

const worker = createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (data) => {
    const [, path = ""] = /^\w+ \/([\w-]*)/.exec(data.toString("latin1")) ?? [];
    if (path === "ping") return void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    if (path !== "endless") return void socket.end(answers[path] ?? "", "latin1");
    socket.write(`${chunked}\r\n`);
    const piece = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", more);
    more();
  });
});

let server: Server;
let token: string;

beforeAll(async () => {
  await once(worker.listen(0, "127.0.0.1"), "listening");
  const { port } = worker.address() as AddressInfo;
  server = await Server.start({ settings: { ENDPOINTS: `liar=http://127.0.0.1:${port}` } });
  const opened = { passthrough: true, maxUsd: 0.001 };
  await exchange(server, "PUT", "/admin/models/liar", testSettings.ADMIN_TOKEN, opened);
  const user = { user: "ada", plan: "unlimited", rules: [{ unit: "jobs", limit: 1 }] };
  ({ token } = await exchange<{ token: string }>(server, "POST", "/tokens", testSettings.APP_SECRET, user));
});
afterAll(async () => {
  worker.close();
  await server.stop();
});

async function ask(path: string) {
  const response = await fetch(`${server.url}/lb/liar/${path}`, {
    headers: { Authorization: `Bearer ${token}` },
    redirect: "manual",
  });
  const text = await response.text().catch(() => "cut");
  expect(response.headers.get("Set-Cookie"), path).toBeNull();
  return { status: response.status, text };
}

it("attack: whatever the worker says is an answer or a 502, and the caller's one place is free again", async () => {
  for (const path of Object.keys(answers)) {
    const { status, text } = await ask(path);
    expect([200, 204, 205, 304, 502], `${path}: ${status} ${text}`).toContain(status);
    expect(text, path).not.toContain("a=b");
    // What the worker said too much may break one more call of it, and no later one.
    const next = await ask("fine");
    if (next.status === 200) expect(next.text, path).toBe("ok");
    else expect(next.text, path).toContain("UPSTREAM_UNREACHABLE");
  }
  expect(await ask("fine")).toEqual({ status: 200, text: "ok" });
});

it("attack: an answer without an end is cut where the limit is, and its caller's place is free again", async () => {
  const { status, text } = await ask("endless");
  expect([status, text.length <= limits.balanced.bytes]).toEqual([200, true]);
  expect(await ask("fine")).toEqual({ status: 200, text: "ok" });
});
