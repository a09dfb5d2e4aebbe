// Uploads in `npm start`, from clients that leave, race and lie: what is cut off leaves nothing, and the server goes on.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testSettings } from "../support/settings.ts";
import { NpmStart } from "./support/npm-start.ts";

interface Announced {
  readonly id: string;
  readonly url: string;
  readonly put: { readonly url: string; readonly headers: Record<string, string> };
}

let server: NpmStart;
let token: string;
const step = 64 * 1024;

beforeAll(async () => {
  server = await NpmStart.start();
  token = await mint("ada");
});
afterAll(() => server.stop());

async function mint(user: string): Promise<string> {
  const rules = [{ unit: "stored", limit: 200_000_000 }];
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = JSON.stringify({ user, plan: "unlimited", rules });
  const minted = await fetch(`${server.url}/tokens`, { method: "POST", headers, body });
  return ((await minted.json()) as { token: string }).token;
}

function jpeg(bytes: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(bytes).fill(7);
  file.set([0xff, 0xd8, 0xff, 0xe0]);
  return file;
}

const authorized = () => ({ Authorization: `Bearer ${token}` });

async function announce(bytes: number): Promise<Announced> {
  const body = JSON.stringify({ type: "image/jpeg", bytes });
  const answer = await fetch(`${server.url}/uploads`, { method: "POST", headers: authorized(), body });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Announced;
}

const put = ({ put: { url, headers } }: Announced, body: Uint8Array<ArrayBuffer>) =>
  fetch(url, { method: "PUT", headers, body });

/** Writes so much of a file that it says to send whole, and hangs up. */
async function leaveAfter({ put: { url, headers } }: Announced, file: Uint8Array, bytes: number): Promise<void> {
  const { pathname, search, host, port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  await once(socket, "connect");
  const head = [
    `PUT ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${file.byteLength}`,
  ].join("\r\n");
  socket.write(`${head}\r\n\r\n`);
  const isFlushed = socket.write(file.subarray(0, bytes));
  if (!isFlushed) await once(socket, "drain");
  socket.destroy();
  await once(socket, "close");
}

async function used(): Promise<number> {
  const { limits } = (await (await fetch(`${server.url}/usage`, { headers: authorized() })).json()) as {
    limits: { unit: string; used: number; reserved: number }[];
  };
  const stored = limits.find(({ unit }) => unit === "stored");
  return (stored?.used ?? 0) - (stored?.reserved ?? 0);
}

describe("an upload", () => {
  it("comes back as it was sent, twenty megabytes of it", async () => {
    const file = jpeg(20_000_000);
    const announced = await announce(file.byteLength);
    expect((await put(announced, file)).status).toBe(201);
    const served = await fetch(announced.url);
    expect(Buffer.from(await served.arrayBuffer()).equals(Buffer.from(file))).toBe(true);
    expect((await fetch(announced.url, { method: "DELETE", headers: authorized() })).status).toBe(204);
    expect((await fetch(announced.url)).status).toBe(404);
  });

  it("leaves nothing where its client leaves, at every 64 KB, and can be sent again", async () => {
    const file = jpeg(12 * step + 17);
    const announced = await announce(file.byteLength);
    for (let cut = 0; cut < file.byteLength; cut += step) {
      await leaveAfter(announced, file, cut);
      expect((await fetch(announced.url)).status, `cut at ${cut}`).toBe(404);
    }
    await leaveAfter(announced, file, file.byteLength - 1);
    expect((await fetch(announced.url)).status).toBe(404);
    expect(await used()).toBe(0);
    expect((await put(announced, file)).status).toBe(201);
    expect(await used()).toBe(file.byteLength);
    expect((await fetch(announced.url)).status).toBe(200);
  });

  it("is won by one of two that race, again and again", async () => {
    for (let round = 0; round < 5; round++) {
      const file = jpeg(1_000_000 + round);
      const announced = await announce(file.byteLength);
      const answers = await Promise.all([put(announced, file), put(announced, file)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      expect((await fetch(announced.url, { method: "HEAD" })).headers.get("Content-Length")).toBe(`${file.byteLength}`);
    }
  });

  it("may be put by a page of another origin", async () => {
    const file = jpeg(1000);
    const announced = await announce(file.byteLength);
    const headers = {
      Origin: "https://app.example.com",
      "Access-Control-Request-Method": "PUT",
      "Access-Control-Request-Headers": "content-type",
    };
    const preflight = await fetch(announced.put.url, { method: "OPTIONS", headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("Access-Control-Allow-Methods")).toContain("PUT");
    expect(preflight.headers.get("Access-Control-Allow-Headers")).toContain("content-type");
    expect(Number(preflight.headers.get("Access-Control-Max-Age"))).toBeGreaterThanOrEqual(3600);
    const origin = { Origin: "https://app.example.com" };
    const sent = { method: "PUT", headers: { ...announced.put.headers, ...origin }, body: file };
    const answer = await fetch(announced.put.url, sent);
    expect(answer.status).toBe(201);
    expect(answer.headers.get("Access-Control-Allow-Origin")).toBe("*");
    const served = await fetch(announced.url, { headers: origin });
    expect(served.headers.get("Access-Control-Allow-Origin")).toBe("*");
  });

  it("that is refused leaves its client the connection", async () => {
    const file = jpeg(300_000);
    const announced = await announce(file.byteLength);
    expect((await put(announced, file)).status).toBe(201);
    for (let n = 0; n < 30; n++) {
      expect((await put(announced, file)).status).toBe(409);
      const wrong = await announce(file.byteLength);
      expect((await put(wrong, new Uint8Array(file.byteLength))).status).toBe(415);
      expect((await put(wrong, file)).status).toBe(410);
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    }
  });

  it("leaves no uncaught exception in the log", () => {
    expect(server.log.filter((line) => /uncaught|unhandled|exception/i.test(line))).toEqual([]);
  });
});
