// A load-balancing endpoint with real workers: two HTTP servers of different frameworks, each a process of its own, one of which dies.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { hurry } from "../support/serve-hurried.ts";
import { freePort } from "../support/serve-locally.ts";
import { testSettings } from "../support/settings.ts";
import { exchange } from "./support/exchange.ts";

type Framework = "hono" | "plain";

class Worker {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(url: string, process: ChildProcess) {
    this.url = url;
    this.#process = process;
  }

  static async start(framework: Framework, port: number): Promise<Worker> {
    const script = `${root}test/e2e/support/balanced-worker.ts`;
    const child = spawn(process.execPath, [script, framework, String(port)], { stdio: ["ignore", "pipe", "inherit"] });
    await once(createInterface({ input: child.stdout }), "line");
    return new Worker(`http://127.0.0.1:${port}`, child);
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill("SIGKILL");
    await once(this.#process, "exit");
  }
}

let server: Server;
let hono: Worker;
let plain: Worker;
let token: string;

beforeAll(async () => {
  [hono, plain] = await Promise.all([Worker.start("hono", await freePort()), Worker.start("plain", await freePort())]);
  server = await Server.start({
    settings: { ENDPOINTS: `both=${hono.url}|${plain.url},plain=${plain.url},hono=${hono.url}` },
  });
  for (const name of ["both", "plain", "hono"]) {
    await exchange(server, "PUT", `/admin/models/${name}`, testSettings.ADMIN_TOKEN, {
      passthrough: true,
      maxUsd: 0.001,
    });
  }
  const minted = await exchange<{ token: string }>(server, "POST", "/tokens", testSettings.APP_SECRET, {
    user: "ada",
    plan: "unlimited",
  });
  token = minted.token;
});
afterAll(async () => {
  await Promise.all([hono.kill(), plain.kill(), server.stop()]);
});

/** As a user, and as a caller of the platform. */
const faces = [
  ["the gateway", (name: string) => ({ base: `${server.url}/lb/${name}`, key: token })],
  [
    "the platform",
    (name: string) => ({ base: `${server.url}/platform/lb/${name}`, key: testSettings.PLATFORM_API_KEY }),
  ],
] as const;

describe.each(faces)("a load-balancing endpoint through %s", (_, face) => {
  const ask = (name: string, path: string, init: RequestInit = {}) => {
    const { base, key } = face(name);
    return fetch(base + path, {
      redirect: "manual",
      ...init,
      headers: { Authorization: `Bearer ${key}`, Cookie: "a=b", ...init.headers },
    });
  };

  it.each(["hono", "plain"])(
    "reaches a worker of the framework %s by any method and path, with neither key nor cookie",
    async (name) => {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        const body = method === "GET" ? {} : { body: "the body" };
        const response = await ask(name, "/echo/a%20b?x=1", { method, ...body, headers: { "X-Own": "y" } });
        const { headers, ...said } = (await response.json()) as { headers: Record<string, string> };
        expect(said).toEqual({
          framework: name,
          method,
          path: "/echo/a%20b?x=1",
          body: method === "GET" ? "" : "the body",
        });
        expect(headers["x-own"]).toBe("y");
        for (const absent of ["authorization", "cookie"]) expect(headers).not.toHaveProperty(absent);
        if (method !== "GET") expect(headers["content-length"]).toBe("8");
        expect(response.headers.get("Set-Cookie")).toBeNull();
        expect(response.headers.get("Content-Security-Policy")).toBe("sandbox");
        expect(response.headers.get("X-Content-Type-Options")).toBe("nosniff");
      }
      const head = await ask(name, "/echo", { method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
    },
  );

  it.each(["hono", "plain"])("streams both ways (%s): each piece is answered before the next is sent", async (name) => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const asking = ask(name, "/double", { method: "POST", body: readable, duplex: "half" } as RequestInit);
    await writer.write(new TextEncoder().encode("one"));
    const reader = (await asking).body?.getReader();
    const next = async () => new TextDecoder().decode((await reader?.read())?.value);
    expect(await next()).toBe("oneone");
    await writer.write(new TextEncoder().encode("two"));
    expect(await next()).toBe("twotwo");
    await writer.close();
    expect((await reader?.read())?.done).toBe(true);
  });

  it("passes 30 MB each way, whole", async () => {
    const body = Buffer.alloc(30 * 1024 * 1024, "x");
    const response = await ask("hono", "/double", { method: "POST", body: body.subarray(0, body.length / 2) });
    expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), body)).toBe(0);
    expect((await ask("hono", "/count", { method: "POST", body })).status).toBe(200);
    const more = await ask("hono", "/count", { method: "POST", body: Buffer.concat([body, Buffer.from("x")]) });
    expect(more.status).toBe(413);
  });

  it("keeps compressed answers as they are", async () => {
    const response = await ask("plain", "/zipped", { headers: { "Accept-Encoding": "gzip" } });
    expect([response.headers.get("Content-Encoding"), await response.text()]).toEqual(["gzip", "zipped ".repeat(1000)]);
  });

  it("a body of no stated length that breaks off, or is too large, is no whole one to its worker", async () => {
    const { base, key } = face("plain");
    const { pathname, port } = new URL(base);
    const heard = async () => (await (await ask("plain", "/heard")).json()) as string[];
    const before = (await heard()).length;
    const head = `POST ${pathname}/hear HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    expect(await raw(Number(port), `${head}5\r\nhello\r\n`, { ends: true })).toMatch(/^HTTP\/1\.1 502/);
    expect(await raw(Number(port), `${head}5\r\nhello\r\nzz\r\n`)).toMatch(/^HTTP\/1\.1 502/);
    const piece = new Uint8Array(1024 * 1024);
    const large = new ReadableStream({
      start: (controller) => {
        for (let n = 0; n <= 30; n++) controller.enqueue(piece);
        controller.close();
      },
    });
    const tooLarge = await ask("plain", "/hear", { method: "POST", body: large, duplex: "half" } as RequestInit);
    expect(tooLarge.status).toBe(413);
    await eventually("the three ends", 5_000, async () => (await heard()).length === before + 3);
    expect((await heard()).slice(before)).toEqual(["broken", "broken", "broken"]);
  });

  it("a GET with a body is refused, and no worker is held to have failed", async () => {
    const { base, key } = face("plain");
    const { pathname, port } = new URL(base);
    for (const framing of [
      "Content-Length: 5\r\n\r\nhello",
      "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ]) {
      const head = `GET ${pathname}/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n`;
      expect(await raw(Number(port), head + framing)).toMatch(/^HTTP\/1\.1 400 .*has no body/s);
    }
    expect((await ask("plain", "/echo")).status).toBe(200);
  });

  it("keeps raw paths with dots and slashes inside the endpoint", async () => {
    const { base, key } = face("plain");
    const { pathname, port } = new URL(base);
    for (const path of [
      "/../../admin/models",
      "/%2e%2e/%2e%2e/v1/endpoints",
      "/..%2f..%2fv1/endpoints",
      "//127.0.0.1:1/x",
      "/./../x",
    ]) {
      const said = await raw(
        Number(port),
        `GET ${pathname}${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${key}\r\nConnection: close\r\n\r\n`,
      );
      expect(said, path).toMatch(/^HTTP\/1\.1 (404|400|405|401)|"framework":"plain"/);
      expect(said).not.toMatch(/"models":|"endpoints":|templateId/);
    }
  });
});

async function raw(port: number, text: string, { ends = false } = {}): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.write(text);
  if (ends) socket.end();
  let said = "";
  for await (const piece of socket) {
    said += piece;
    // The whole answer is here; the connection may stay for a while.
    if (/\r\n\r\n[\s\S]*\}/.test(said)) break;
  }
  return said;
}

describe("two workers, of which one dies", () => {
  it("share the calls; the other takes all once one is gone, and it takes part again once it is back", async () => {
    const ask = async () => {
      const response = await fetch(`${server.url}/lb/both/echo`, { headers: { Authorization: `Bearer ${token}` } });
      const { framework } = (await response.json()) as { framework?: Framework };
      return framework ?? response.status;
    };
    const several = async (count: number) => {
      const seen: (Framework | number)[] = [];
      for (let n = 0; n < count; n++) seen.push(await ask());
      return seen;
    };
    expect(new Set(await several(6))).toEqual(new Set(["hono", "plain"]));
    await plain.kill();
    const [, ...after] = await several(8);
    const lost = after.filter((one) => one !== "hono");
    // At most the one call that finds out is lost: there is no second try.
    expect(lost.length).toBeLessThanOrEqual(1);
    for (const one of lost) expect(one).toBe(502);
    plain = await Worker.start("plain", Number(new URL(plain.url).port));
    await eventually("the worker that came back", 15_000, async () => (await ask()) === "plain");
  });
});

describe("a caller's patience", () => {
  it("ends with 400 where no worker comes, and with 524 where one takes too long", async () => {
    const { door, times } = hurry(120);
    const settings = { ENDPOINTS: `gone=http://127.0.0.1:${await freePort()},slow=${hono.url}` };
    const hurried = await Server.start({ settings, door });
    try {
      const ask = (path: string) =>
        fetch(`${hurried.url}/platform/lb/${path}`, { headers: { Authorization: testSettings.PLATFORM_API_KEY } });
      const askedAt = performance.now();
      const [none, slow] = await Promise.all([ask("gone/x"), ask("slow/never")]);
      const tookMs = performance.now() - askedAt;
      expect([none.status, await none.json()]).toEqual([
        400,
        expect.objectContaining({ error: "no workers available" }),
      ]);
      expect([slow.status, await slow.json()]).toEqual([524, expect.objectContaining({ code: "WORKER_TOO_SLOW" })]);
      expect(tookMs).toBeGreaterThan((5.5 * 60_000) / times - 100);
    } finally {
      await hurried.stop();
    }
  }, 400_000);
});
