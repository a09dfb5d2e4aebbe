// Storage that fails for more than two minutes: the runtime gives the meters' alarms up, and the payer's next call brings
// them back. Needs a disk of its own, which only root can mount.
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { ScriptedUpstream, upstreamKey } from "../e2e/support/scripted-upstream.ts";
import { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";

const model = "black-forest-labs-flux-1-schnell";
const users = ["ada", "bob"];
const diskMegabytes = 40;
/** The runtime tries for 126 s. */
const failsMs = 195_000;
const bindsMs = 2_000;
const noticedWithinMs = 20_000;

it("fault H4: what was due while the disk was full is done after the payer's next call", async (test) => {
  const upstream = await new ScriptedUpstream().listen();
  onTestFinished(() => upstream.close());
  const server = await Server.start({ settings: { UPSTREAM_URL: upstream.url, UPSTREAM_API_KEY: upstreamKey } });
  onTestFinished(() => server.stop());
  await server.kill9();
  if (!mountDisk(server.disk)) return test.skip("this machine lets nobody mount a disk");
  await server.restart();

  const tokens = await Promise.all(users.map((user) => tokenOf(server, user)));
  for (const token of [...tokens, ...tokens, ...tokens]) await submit(server, token);
  for (const job of upstream.jobs) job.state = { status: "COMPLETED", output: { cost: 0.003 } };
  const asked = () => new Set(upstream.asked.filter(({ operation }) => operation === "status").map(({ job }) => job));

  // The meters hear of the ids within a second.
  await setTimeout(bindsMs);
  const filler = join(server.disk, "filler");
  fill(filler);
  await setTimeout(failsMs);
  rmSync(filler);
  expect(asked().size).toBe(0);

  await Promise.all(tokens.map((token) => usage(server, token)));
  await eventually("a question about each job", noticedWithinMs, async () => asked().size === upstream.jobs.length);
  await eventually("the end of each job", noticedWithinMs, async () => {
    const books = await Promise.all(tokens.map((token) => usage(server, token)));
    return books.every(({ jobs }) => jobs.every(({ status }) => status === "COMPLETED"));
  });
});

function mountDisk(folder: string): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${diskMegabytes}m`, "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return false;
  }
  onTestFinished(() => void execFileSync("umount", ["--lazy", folder]));
  expect(readdirSync(folder)).toEqual([]);
  return true;
}

/** To its last byte. */
function fill(path: string): void {
  for (let bytes = 1024 * 1024; bytes >= 512; ) {
    try {
      writeFileSync(path, Buffer.alloc(bytes), { flag: "a" });
    } catch {
      bytes /= 2;
    }
  }
}

async function tokenOf(server: Server, user: string): Promise<string> {
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = JSON.stringify({ user, plan: "unlimited" });
  const response = await fetch(`${server.url}/tokens`, { method: "POST", headers, body });
  return ((await response.json()) as { token: string }).token;
}

async function submit(server: Server, token: string): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` };
  const body = JSON.stringify({ input: { prompt: `a lighthouse ${Math.random()}` } });
  const response = await fetch(`${server.url}/v2/${model}/runsync?wait=1000`, { method: "POST", headers, body });
  expect(response.status).toBe(200);
}

async function usage(server: Server, token: string): Promise<{ jobs: { status: string }[] }> {
  const response = await fetch(`${server.url}/usage`, { headers: { Authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  return (await response.json()) as { jobs: { status: string }[] };
}
