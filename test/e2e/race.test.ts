// `npm run race` as a person runs it who pipes it elsewhere: plain lines, and an exit code that says whether the quota was exact.
import { spawn } from "node:child_process";
import { expect, it } from "vitest";
import { root } from "../../src/cli/wrangler.ts";

it("shows that the gateway lets exactly 50 of 200 pass, and a counter in KV more", { timeout: 90_000 }, async () => {
  const { status, output } = await run("test/race/run.ts");
  expect(status, output).toBe(0);
  expect(output).toContain("Sluice           50 of 200 passed, 150 refused: exact");
  const [, passed] = /a counter in KV {2}(\d+) of 200 passed/.exec(output) ?? [];
  expect(Number(passed)).toBeGreaterThan(50);
  expect(output).not.toContain("\x1b");
});

function run(script: string): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", script], { cwd: root });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, output })));
}
