// A copy of what a clone holds, in a folder of its own: what runs there leaves nothing in this checkout.
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The name has a space, as folders of newcomers do. */
export function copyCheckout(): { path: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "sluice-"));
  const path = join(folder, "a clone");
  mkdirSync(path);
  for (const entry of ["src", "docs", "wrangler.toml", "package.json", "package-lock.json", "tsconfig.json"]) {
    cpSync(join(root, entry), join(path, entry), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(path, "node_modules"));
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A program on this Node. Its home is the folder, so that no login or setting of the developer's own is seen or touched. */
export function run(folder: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], HOME: folder, XDG_CONFIG_HOME: join(folder, "home"), ...env },
  });
  let output = "";
  child.stdout.on("data", (data) => (output += data));
  child.stderr.on("data", (data) => (output += data));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  return { child, ended, output: () => output };
}

/** Asks it to end, by its id, and waits until it has. */
export async function end({ child, ended }: { child: ChildProcess; ended: Promise<unknown> }): Promise<void> {
  if (child.exitCode === null) child.kill("SIGTERM");
  await ended;
}
