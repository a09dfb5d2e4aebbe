// What only sockets can do to the gateway: an upstream that resets, stalls, lies about lengths, floods and drips.
import { connect, createServer } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../src/contract/limits.ts";
import { hurry } from "../support/serve-hurried.ts";
import { listenLocally } from "../support/serve-locally.ts";
import { answer, RawUpstream, type Script } from "../support/serve-upstream.ts";
import { testSettings } from "../support/settings.ts";
import { describeOnce, type Gateway, startGateway } from "./support/gateway.ts";

const key = "canary-key-of-the-upstream-0123456789";
/** Longer than the gateway's own time-outs together, on a machine that is busy. */
const patienceMs = 45_000;
const job = JSON.stringify({ id: "job-1", status: "IN_QUEUE" });
const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const reset: Script = (socket) => void socket.resetAndDestroy();

/** A megabyte of it is a kilobyte on the wire; a hundred of them are more than an isolate holds. */
const bomb = gzipSync(Buffer.concat([Buffer.from(`{"id":"a","status":"`), Buffer.alloc(100 * 1024 * 1024, 0x61)]));
const gzip = { headers: "Content-Encoding: gzip\r\n" };

/** Nobody waits for the time-outs of the one that stalls: there all timers of the gateway run faster. */
const { door } = hurry(10);

type Fault = readonly [name: string, code: string, script: Script];
const stalls: readonly Fault[] = [
  ["stalls-before-the-head", "UPSTREAM_TIMEOUT", () => {}],
  ["stalls-in-the-head", "UPSTREAM_TIMEOUT", (socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-")],
  ["stalls-in-the-body", "UPSTREAM_TIMEOUT", (socket) => void socket.write(`${chunkedHead}5\r\n{"id"\r\n`)],
  ["drips", "UPSTREAM_TIMEOUT", drip],
];
const faults: readonly Fault[] = [
  ["reset", "UPSTREAM_UNREACHABLE", reset],
  ["closes-at-once", "UPSTREAM_UNREACHABLE", (socket) => void socket.end()],
  ["resets-in-the-body", "UPSTREAM_TRUNCATED", breakOff],
  ["states-too-long-a-length", "UPSTREAM_TRUNCATED", (socket) => void socket.end(longer(10))],
  ["states-too-short-a-length", "UPSTREAM_BAD_JSON", (socket) => void socket.end(longer(-10))],
  ["states-no-length-at-all", "UPSTREAM_UNREACHABLE", (socket) => void socket.end(longer(Number.NaN))],
  ["ends-a-chunk-early", "UPSTREAM_TRUNCATED", (socket) => void socket.end(`${chunkedHead}ff\r\n{"id":1\r\n`)],
  ["spoils-a-chunk-length", "UPSTREAM_TRUNCATED", (socket) => void socket.end(`${chunkedHead}zz\r\n{"id":1\r\n`)],
  ["says-no-http", "UPSTREAM_UNREACHABLE", (socket) => void socket.end("SSH-2.0-OpenSSH_9.9\r\n\r\n")],
  ["answers-100", "UPSTREAM_BAD_ANSWER", (socket) => void socket.end("HTTP/1.1 100 Continue\r\n\r\n")],
  ["answers-101", "UPSTREAM_BAD_ANSWER", (socket) => void socket.end("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n")],
  ["sends-huge-headers", "UPSTREAM_UNREACHABLE", (socket) => void socket.end(answer(job, { headers: manyHeaders() }))],
  ["redirects-elsewhere", "UPSTREAM_REDIRECT", (socket) => void socket.end(redirect())],
  ["spoils-its-gzip", "UPSTREAM_TRUNCATED", (socket) => void socket.end(answer(job, gzip))],
  [
    "is-a-gzip-bomb-in-an-error",
    "UPSTREAM_FAILED",
    (socket) => void socket.end(answer(bomb, { ...gzip, status: "500 No" })),
  ],
  ["floods", "UPSTREAM_FAILED", flood],
];

async function drip(socket: Parameters<Script>[0]): Promise<void> {
  socket.write(chunkedHead);
  for (let n = 0; n < 400 && !socket.destroyed; n++) {
    socket.write("1\r\n \r\n");
    await pause(200);
  }
}

async function breakOff(socket: Parameters<Script>[0]): Promise<void> {
  socket.write(`${chunkedHead}8\r\n{"id":"a\r\n`);
  await pause(200);
  socket.resetAndDestroy();
}

async function flood(socket: Parameters<Script>[0]): Promise<void> {
  socket.write("HTTP/1.1 500 No\r\nContent-Type: application/json\r\n\r\n");
  const piece = Buffer.alloc(64 * 1024, 0x20);
  for (let n = 0; n < 2000 && !socket.destroyed; n++) {
    if (!socket.write(piece)) await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
  }
  socket.end();
}

function longer(by: number): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${job.length + by}\r\n\r\n${job}`;
}

const manyHeaders = () => `X-Large: ${"a".repeat(8000)}\r\n`.repeat(200);

let elsewhere = 0;
const trap = createServer((socket) => {
  elsewhere += 1;
  socket.destroy();
});
let trapUrl = "";
const redirect = () => answer("", { status: "302 Found", headers: `Location: ${trapUrl}/\r\n` });

const fine: readonly (readonly [string, Script])[] = [
  ["fine", (socket) => void socket.end(answer(job))],
  ["gzips", (socket) => void socket.end(answer(gzipSync(job), gzip))],
  ["bombs", (socket) => void socket.end(answer(bomb, gzip))],
  ["refuses-unread", (socket) => void socket.write(answer(`{"error":"too much"}`, { status: "413 Too much" }))],
];

let upstream: RawUpstream;
let server: Gateway;
let hurried: Gateway;
let token: string;
const models = [...stalls, ...faults, ...fine].map(([name]) => name);

beforeAll(async () => {
  upstream = await new RawUpstream(
    new Map([...[...stalls, ...faults].map(([name, , script]) => [name, script] as const), ...fine]),
  ).listen();
  trapUrl = await listenLocally(trap);
  const settings = { UPSTREAM_URL: upstream.url, UPSTREAM_API_KEY: key };
  server = await startGateway(settings);
  hurried = await startGateway(settings, door);
  const opened = JSON.stringify({ passthrough: true, maxUsd: 0.01 });
  for (const at of [server, hurried]) {
    for (const name of models) {
      expect((await send(at, "PUT", `/admin/models/${name}`, testSettings.ADMIN_TOKEN, opened)).status).toBe(200);
    }
  }
  const user = JSON.stringify({ user: "ada", plan: "unlimited" });
  // Both know it: they have one secret.
  token = JSON.parse((await send(server, "POST", "/tokens", testSettings.APP_SECRET, user)).text).token;
});
afterAll(async () => {
  await server.stop();
  await hurried.stop();
  await upstream.close();
  await new Promise((resolve) => trap.close(resolve));
});

/** Whatever comes back, in time; the canary looks at all of it. */
async function send(at: Gateway, method: string, path: string, bearer: string, body?: string) {
  const headers = { Authorization: `Bearer ${bearer}` };
  const init = { method, headers, signal: AbortSignal.timeout(patienceMs), ...(body !== undefined && { body }) };
  const response = await fetch(`${at.url}${path}`, init);
  const text = await response.text().catch((error: unknown) => `cut: ${String(error)}`);
  expect(text + JSON.stringify([...response.headers])).not.toContain(key);
  return { status: response.status, text, code: codeIn(text) };
}

function codeIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { code?: string }).code;
  } catch {
    return undefined;
  }
}

const run = (name: string, body = `{"input":{}}`, at = server) => send(at, "POST", `/v2/${name}/run`, token, body);

describeOnce(() => {
  beforeAll(() => {
    upstream.heads.length = 0;
  });

  describe("an upstream's socket", () => {
    it.concurrent.each([
      ...stalls.map(([name, code]) => [name, code, () => hurried] as const),
      ...faults.map(([name, code]) => [name, code, () => server] as const),
    ])("%s: %s", { timeout: 2 * patienceMs }, async (name, code, at) => {
      const { status, code: found } = await run(name, undefined, at());
      expect({ name, code: found }).toEqual({ name, code });
      expect(status).toBeGreaterThanOrEqual(502);
    });

    it.concurrent.each(["fine", "gzips"])("%s: is understood", async (name) => {
      expect(await run(name)).toMatchObject({ status: 200, text: expect.stringMatching(/^\{"id":"job-1\./) });
    });

    it.concurrent("cuts a gzip bomb off, in bounded memory", { timeout: 2 * patienceMs }, async () => {
      server.forgetPeak();
      const before = server.memory().now;
      const { text } = await run("bombs");
      // workerd ends the answer where it was cut; on the edge the connection breaks. It is no JSON either way.
      expect(text.length).toBeLessThan(51 * 1024 * 1024);
      expect(text.endsWith("}")).toBe(false);
      expect(server.memory().peak - before).toBeLessThan(250 * 1024 * 1024);
    });

    it.concurrent("that refuses a large body without reading it is heard", { timeout: 2 * patienceMs }, async () => {
      const { code } = await run("refuses-unread", `{"input":{"a":"${"x".repeat(9 * 1024 * 1024)}"}}`);
      expect(code).toBe("UPSTREAM_INVALID");
    });
  });

  describe("a client's socket", () => {
    /**
     * Little more than a run may be, in one chunk, under a head that states a few bytes. What a server has not read when
     * it hangs up takes its answer along, so there is not much of it.
     */
    const body = `{"input":{"a":"${"x".repeat(limits.runPayloadBytes)}"}}`;
    const lengths = ["Content-Length: 50", "Transfer-Encoding: chunked"];

    it.each([
      ["first", lengths],
      ["last", lengths.toReversed()],
    ])("that states a small length %s and sends chunks is held to the limit", async (_, stated) => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      const head = ["POST /v2/fine/run HTTP/1.1", "Host: sluice", `Authorization: Bearer ${token}`, ...stated];
      socket.write(`${[...head, "", ""].join("\r\n")}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
      const answer = await new Promise<string>((resolve, reject) => {
        socket.once("error", reject);
        socket.once("data", (data) => resolve(String(data)));
      });
      socket.destroy();
      expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    });
  });

  it("followed no redirect, and still serves", async () => {
    expect(elsewhere).toBe(0);
    expect((await run("fine")).status).toBe(200);
  });

  it("was sent no submit twice, however it ended", () => {
    const submits = (name: string) => upstream.heads.filter((head) => head.startsWith(`POST /v2/${name}/run `)).length;
    expect(submits("reset")).toBe(1);
    expect([...stalls, ...faults].filter(([name]) => submits(name) > 1)).toEqual([]);
  });

  it("tells nobody the key, nor the log of what went wrong", () => {
    const log = [...server.log, ...hurried.log];
    expect(log.join("\n")).not.toContain(key);
    // The answer that was cut off on purpose ends as an error of its stream.
    const uncaught = log.filter((line) => /uncaught|unhandled/i.test(line) && !line.endsWith("too-large"));
    expect(uncaught).toEqual([]);
    expect(upstream.heads.length).toBeGreaterThan(faults.length);
    expect(upstream.heads.filter((head) => !head.includes(`Bearer ${key}`))).toEqual([]);
  });
});
