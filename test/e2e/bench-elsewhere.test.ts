// `npm run bench -- --url`: measures what somebody else serves, with a bounded number of calls.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { bounds } from "../bench/elsewhere.ts";
import { Server } from "../support/serve.ts";

let server: Server;
beforeAll(async () => {
  server = await Server.start({ settings: { SESSION_PLAN: "developer" } });
});
afterAll(() => server.stop());

async function bench(...args: string[]) {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "test/bench/run.ts", ...args], {
    cwd: root,
  });
  const said = { out: "", err: "" };
  child.stdout.on("data", (data) => (said.out += data));
  child.stderr.on("data", (data) => (said.err += data));
  const [code] = (await once(child, "close")) as [number];
  return { code, ...said };
}

it("says p50, p95 and p99 of a hit, a status, a run and a picture", async () => {
  const { code, out, err } = await bench("--url", server.url, "--requests", "5");
  expect(code, err).toBe(0);
  const rows = out.split("\n").filter((line) => /^\| (hit|status|run|picture) \|/.test(line));
  expect(rows).toHaveLength(4);
  for (const row of rows) {
    const [, , count, ...ms] = row.split("|").map((cell) => cell.trim());
    expect(count).toBe("5");
    for (const cell of ms.slice(0, 4)) expect(cell).toMatch(/^[\d.,]+$/);
  }
  expect(err).toContain("6 jobs");
  expect(out).not.toContain("eyJ");
});

it.each([
  [["--requests", String(bounds.requests.max + 1)], /1 to 200/],
  [["--requests", "0"], /1 to 200/],
  [["--requests", "many"], /1 to 200/],
  [["--token", "wrong"], /answered 401/],
  [["--model", "no-such-model"], /answered 404/],
])("ends with what is wrong: %j", async (args, reason) => {
  const { code, out, err } = await bench("--url", server.url, ...args);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(reason);
  expect(err).not.toContain("    at ");
});
