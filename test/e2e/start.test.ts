// `npm start`, as a process: what it serves, what it writes, what it refuses, and that nothing of it stays.
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { copyCheckout, end, run } from "./support/checkout.ts";

const start = "src/cli/start.ts";
const clone = copyCheckout();
afterAll(clone.remove);

describe("npm start", () => {
  let port: number;
  let server: ReturnType<typeof run>;
  beforeAll(async () => {
    port = await freePort();
    server = run(clone.path, [start, "--port", `${port}`]);
    await vi.waitFor(() => expect(server.output()).toContain("Sluice serves at"), { timeout: 50_000, interval: 50 });
  });
  afterAll(() => end(server));

  it("prints its address and a first call that works", async () => {
    expect(server.output()).toContain(`Sluice serves at http://127.0.0.1:${port}\n`);
    const [, address] = /^ {2}curl (\S+)$/m.exec(server.output()) ?? [];
    const response = await fetch(address as string);
    expect(response.status).toBe(200);
    expect(await response.json()).toHaveProperty("models");
  });

  it("answers a page of another port", async () => {
    const headers = { Origin: "http://localhost:5173" };
    const response = await fetch(`http://127.0.0.1:${port}/models`, { headers });
    expect(response.headers.get("Access-Control-Allow-Origin")).toBe("*");
  });

  it("wrote the settings of this machine, for this user alone", () => {
    const path = join(clone.path, ".dev.vars");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).toContain("LOCAL=true");
  });

  it("warns of nothing", () => {
    expect(server.output()).not.toMatch(/warn|error|deprecat|update available/i);
  });

  it("says that the port is taken to whoever starts it twice", async () => {
    const second = run(clone.path, [start, "--port", `${port}`]);
    onTestFinished(() => end(second));
    expect(await second.ended).toBe(1);
    expect(second.output()).toBe(`Port ${port} is taken. Choose another: npm start -- --port ${port + 1}\n`);
  });

  it("ends when it is told to, and frees its port", async () => {
    await end(server);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  });
});

describe("npm", () => {
  it("takes the server along when it ends, though its shell passes no signal on", async () => {
    const port = await freePort();
    const shell = "require('node:child_process').spawn(process.execPath, process.argv.slice(1), { stdio: 'inherit' })";
    const npm = run(clone.path, ["-e", shell, start, "--port", `${port}`], { npm_lifecycle_event: "start" });
    onTestFinished(() => end(npm));
    await vi.waitFor(() => expect(npm.output()).toContain("Sluice serves at"), { timeout: 50_000, interval: 50 });
    await end(npm);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  });
});

describe("--port", () => {
  it.each(["0", "65536", "-1", "1e3", "80 80", "http", ""])("refuses %o", async (port) => {
    const refused = run(clone.path, [start, `--port=${port}`]);
    onTestFinished(() => end(refused));
    expect(await refused.ended).toBe(2);
    expect(refused.output()).toBe(`--port takes a number from 1 to 65535, not ${port}\n`);
  });
});

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
