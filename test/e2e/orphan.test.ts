// Who serves a state: of the starts that find the record of one that crashed, a single one.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { removeStale } from "../../src/cli/orphan.ts";
import { root } from "../../src/cli/wrangler.ts";

let state: string;
let record: string;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "sluice-"));
  record = join(state, "processes.json");
});
afterEach(() => rmSync(state, { recursive: true }));

/** No process has this pid. */
const stale = JSON.stringify({ node: { pid: 2 ** 30, command: ["start.ts"] } });

describe("the record of a start that crashed", () => {
  it("is removed as it was read", () => {
    writeFileSync(record, stale);
    removeStale(state, stale);
    expect(readdirSync(state)).toEqual([]);
  });

  it("may be gone already", () => {
    removeStale(state, stale);
    expect(readdirSync(state)).toEqual([]);
  });

  it("is left alone where another start has written its own meanwhile", () => {
    writeFileSync(record, "of another");
    removeStale(state, stale);
    expect([readdirSync(state), readFileSync(record, "utf8")]).toEqual([["processes.json"], "of another"]);
  });

  it.each([
    ["whole", stale],
    ["broken", '{"node":'],
  ])("gives the state to one of four that find it at once: %s", async (_, found) => {
    writeFileSync(record, found);
    const script = `const { claimState } = await import("./src/cli/orphan.ts");
      console.log(String(await claimState(${JSON.stringify(state)})));
      process.stdin.on("end", () => process.exit()).resume();`;
    const starts = Array.from({ length: 4 }, () => {
      const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { cwd: root });
      onTestFinished(() => void child.kill());
      const said = new Promise<string>((resolve) => child.stdout.once("data", (data) => resolve(`${data}`.trim())));
      const ended = new Promise((resolve) => child.once("close", resolve));
      return { child, said, ended };
    });
    const said = await Promise.all(starts.map((start) => start.said));
    const first = starts[said.indexOf("undefined")];
    expect(said.sort()).toEqual([...Array.from({ length: 3 }, () => `${first?.child.pid}`), "undefined"]);
    for (const { child } of starts) child.stdin.end();
    await Promise.all(starts.map(({ ended }) => ended));
    expect(readdirSync(state)).toEqual([]);
  });
});

it("a start removes no record but its own", async () => {
  const script = `const { claimState } = await import("./src/cli/orphan.ts");
    await claimState(${JSON.stringify(state)});
    (await import("node:fs")).writeFileSync(${JSON.stringify(record)}, ${JSON.stringify(stale)});`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { cwd: root });
  await new Promise((resolve) => child.once("close", resolve));
  expect(readFileSync(record, "utf8")).toBe(stale);
});
