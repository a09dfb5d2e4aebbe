// Puts the peers where git does not look: they are no dependencies of the product.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../src/cli/wrangler.ts";

const folder = join(root, "node_modules/.cache/sluice-peers");
const files = ["package.json", "package-lock.json", "fal-proxy.js"];

/** The folder that they lie in; undefined where they cannot be had, as without a network. */
export function installPeers(): string | undefined {
  const installed = join(folder, "node_modules/.package-lock.json");
  const lock = join(import.meta.dirname, "package-lock.json");
  const same =
    existsSync(installed) && readFileSync(join(folder, "package-lock.json"), "utf8") === readFileSync(lock, "utf8");
  mkdirSync(folder, { recursive: true });
  for (const file of files) copyFileSync(join(import.meta.dirname, file), join(folder, file));
  if (same) return folder;
  // Nothing of theirs runs while they are installed.
  const quietly = ["--no-audit", "--no-fund", "--loglevel=error"];
  const briefly = ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000"];
  const args = ["ci", "--ignore-scripts", ...quietly, ...briefly];
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  return status === 0 ? folder : undefined;
}
