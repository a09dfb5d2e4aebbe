// Runs wrangler quietly: no banner, no telemetry, no look-up of a location outside the machine.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { endFirst } from "./interruption.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));

const quiet = {
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_SEND_METRICS: "false",
};

export function wrangler(args: string[], stdio: "inherit" | "pipe" = "inherit") {
  const bin = `${root}node_modules/wrangler/bin/wrangler.js`;
  const child = spawn(process.execPath, [bin, ...args], { cwd: root, stdio, env: { ...process.env, ...quiet } });
  endFirst(child);
  return child;
}

/** Runs it to its end, and hands over what it printed. */
export function readWrangler(args: string[]): Promise<{ status: number | null; stdout: string; output: string }> {
  const child = wrangler(args, "pipe");
  const printed = { stdout: "", output: "" };
  child.stdout?.on("data", (data) => {
    printed.stdout += data;
    printed.output += data;
  });
  child.stderr?.on("data", (data) => (printed.output += data));
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, ...printed })));
}

if (import.meta.main) wrangler(process.argv.slice(2)).on("exit", (code) => process.exit(code ?? 1));
