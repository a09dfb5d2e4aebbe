// The Worker's bundle, built once for as long as its sources stay the same, whoever asks for it.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { root, wrangler } from "../../src/cli/wrangler.ts";
import type { Build } from "./serve-config.ts";

const cache = join(root, "node_modules/.cache/sluice-bundle");

/** The two that there are; wrangler.toml names the first. */
export type Entry = "index" | "gateway-only";

/** The folder that the bundle lies in: `index.js`, and beside it the modules that it imports as data. */
export async function bundle(entry: Entry = "index"): Promise<string> {
  const folder = join(cache, `${fingerprint()}-${entry}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "fresh-"));
  await deployDry(entry, fresh);
  renameSync(join(fresh, `${entry}.js`), join(fresh, "index.js"));
  // Two test files may build at once: the first to be ready wins, and the other's is the same.
  if (existsSync(folder)) rmSync(fresh, { recursive: true });
  else renameSync(fresh, folder);
  return folder;
}

export async function todaysBuild(entry: Entry = "index"): Promise<Build> {
  return { folder: await bundle(entry), wranglerToml: join(root, "wrangler.toml") };
}

function fingerprint(): string {
  const hash = createHash("sha256");
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).map((path) => `src/${path}`);
  for (const path of ["wrangler.toml", "package-lock.json", ...sources.sort()]) {
    const file = join(root, path);
    if (statSync(file).isFile()) hash.update(path).update(readFileSync(file));
  }
  return hash.digest("hex").slice(0, 16);
}

async function deployDry(entry: Entry, outdir: string): Promise<void> {
  const child = wrangler(["deploy", `src/${entry}.ts`, "--dry-run", "--minify", "--outdir", outdir], "pipe");
  let said = "";
  child.stdout?.on("data", (data) => (said += data));
  child.stderr?.on("data", (data) => (said += data));
  const status = await new Promise((resolve) => child.on("exit", resolve));
  if (status !== 0) throw new Error(`the bundle could not be built:\n${said}`);
}
