// Runs wrangler quietly: no banner, no telemetry, no look-up of a location outside the machine.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../", import.meta.url));

const quiet = {
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_SEND_METRICS: "false",
};

export function wrangler(args: string[], stdio: "inherit" | "pipe" = "inherit") {
  const bin = `${root}node_modules/wrangler/bin/wrangler.js`;
  return spawn(process.execPath, [bin, ...args], { cwd: root, stdio, env: { ...process.env, ...quiet } });
}

if (import.meta.main) wrangler(process.argv.slice(2)).on("exit", (code) => process.exit(code ?? 1));
