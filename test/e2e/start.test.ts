// `npm start`, as a process: what it serves, what it writes, what it refuses, and that nothing of it stays.
import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { copyCheckout, end, run } from "./support/checkout.ts";
import { freePort } from "./support/npm-start.ts";

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

  it("prints its address, a first picture and a token for a user, to be pasted as they stand", async () => {
    expect(server.output()).toContain(`Sluice serves at http://127.0.0.1:${port}\n`);
    const lines = [...server.output().matchAll(/^ {2}(.*)$/gm)].map(([, line]) => line).join("\n");
    const pasted = spawnSync("bash", ["-c", lines], { cwd: clone.path, encoding: "utf8" });
    expect(pasted.stdout).toContain(`"status":"COMPLETED"`);
    expect(pasted.stdout).toContain(`"user":"ada"`);
  });

  it("answers a page of another port", async () => {
    const headers = { Origin: "http://localhost:5173" };
    const response = await fetch(`http://127.0.0.1:${port}/models`, { headers });
    expect(response.headers.get("Access-Control-Allow-Origin")).toBe("*");
  });

  it.each([
    ["refused at the door", "/v2/z-image-turbo/run", 401],
    ["for a model that is not there", "/v2/nothing/run", 401],
    ["of a route that reads none", "/healthz", 405],
    ["of an operator who is none", "/admin/users/ada/recount", 401],
  ])("answers every call on a connection whose last one had a small body %s", async (_what, path, status) => {
    const call = { method: "POST", headers: { Authorization: "Bearer nobody" }, body: '{"input":{"prompt":"x"}}' };
    for (let time = 0; time < 120; time++) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, call);
      expect(response.status).toBe(status);
      await response.text();
    }
  });

  it("wrote the settings of this machine, for this user alone", () => {
    const path = join(clone.path, ".dev.vars");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).toContain("LOCAL=true");
  });

  it("warns of nothing", () => {
    expect(server.output()).not.toMatch(/warn|error|deprecat|update available/i);
  });

  it("says that the port is taken to whoever serves another state there", async () => {
    const second = run(clone.path, [start, "--port", `${port}`, "--state", ".state-2"]);
    onTestFinished(() => end(second));
    expect(await second.ended).toBe(1);
    expect(second.output()).toBe(`Port ${port} is taken. Choose another: npm start -- --port ${port + 1}\n`);
  });

  it.each([
    ["here", async () => ({ asked: port, offered: port + 1 })],
    ["at another port", async () => freePort().then((free) => ({ asked: free, offered: free }))],
  ])("says who serves its state to whoever starts it twice, %s", async (_, ports) => {
    const { asked, offered } = await ports();
    const second = run(clone.path, [start, "--port", `${asked}`]);
    onTestFinished(() => end(second));
    expect(await second.ended).toBe(1);
    const who = `Process ${server.child.pid} serves the state in .state.`;
    expect(second.output()).toBe(`${who} To serve another: npm start -- --port ${offered} --state .state-2\n`);
  });

  it("ends within two seconds when it is told to, and frees its port", async () => {
    const begun = performance.now();
    await end(server);
    expect(performance.now() - begun).toBeLessThan(2000);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  });
});

describe("two at the same moment", () => {
  it.each([
    ["at one port", "one"],
    ["at one port with one state", "both"],
  ])("%s: one serves, and the other says why not", async (_, which) => {
    const port = await freePort();
    const states = which === "one" ? [".state-a", ".state-b"] : [".state-c", ".state-c"];
    const both = states.map((state) => run(clone.path, [start, "--port", `${port}`, "--state", state]));
    onTestFinished(async () => void (await Promise.all(both.map(end))));
    const codes = await Promise.race(both.map(async (each) => ({ each, code: await each.ended })));
    expect(codes.code).toBe(1);
    expect(codes.each.output()).toMatch(
      /^(Port \d+ is taken|Process \d+ serves the state in \S+)\. (Choose|To serve) another.*\n$/,
    );
    const [other] = both.filter((each) => each !== codes.each);
    await vi.waitFor(() => expect(other?.output()).toContain("Sluice serves at"), { timeout: 50_000, interval: 50 });
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  });
});

describe("a folder that cannot be written", () => {
  it("is told in one sentence", async () => {
    const refused = run(clone.path, [start, "--port", `${await freePort()}`, "--state", "package.json/state"]);
    onTestFinished(() => end(refused));
    expect(await refused.ended).toBe(1);
    expect(refused.output()).toBe(
      "The folder package.json/state cannot be written: ENOTDIR. Choose another: npm start -- --state <folder>\n",
    );
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

describe("an option", () => {
  it.each([
    ["--prot", "There is no option --prot. npm start -- --help lists the options.\n"],
    ["9000", "9000 is no option. npm start -- --help lists the options.\n"],
    ["--port", "--port is not used like this. npm start -- --help lists the options.\n"],
    ["--host=", "--host takes a value. npm start -- --help explains it.\n"],
  ])("%s is refused in one sentence", async (option, sentence) => {
    const refused = run(clone.path, [start, option]);
    onTestFinished(() => end(refused));
    expect(await refused.ended).toBe(2);
    expect(refused.output()).toBe(sentence);
  });

  it("--help prints each of them", async () => {
    const helped = run(clone.path, [start, "--help"]);
    onTestFinished(() => end(helped));
    expect(await helped.ended).toBe(0);
    for (const name of ["port", "host", "plan", "json", "state"]) expect(helped.output()).toContain(`--${name} `);
  });
});
