// What is served before the Worker is asked: the page's files, and the client that browsers import. Built into dist/site.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { nameIn } from "./file-names.ts";
import { isPackage } from "./place.ts";
import type { Files } from "./site.ts";
import { root } from "./wrangler.ts";

const builtFolder = "dist/site";
const digestFile = "dist/site.sha256";
/** The reference of the routes is made of what the Worker is made of. */
const sources = ["src", "docs", "wrangler.toml", "node_modules/.package-lock.json"];

/** Does nothing where nothing changed: then esbuild is not loaded. */
export async function buildAssets(folder = root): Promise<void> {
  // A package comes with what was built for it.
  if (isPackage && existsSync(join(folder, builtFolder))) return;
  const digest = digestOf(folder);
  if (readText(join(folder, digestFile)) === digest) return;
  write(join(folder, builtFolder), await assetsOf(folder));
  writeWhole(join(folder, digestFile), digest, join(folder, builtFolder));
}

async function assetsOf(folder: string): Promise<Files> {
  const [{ bundleForBrowsers }, { siteFiles }] = await Promise.all([import("./bundle.ts"), import("./site.ts")]);
  const files = withPages() ? await siteFiles(folder) : new Map();
  const client = await bundleForBrowsers("src/client/index.ts", folder);
  const hashed = `client-${createHash("sha256").update(client).digest("hex").slice(0, 16)}.js`;
  files.set("client.js", client);
  files.set(hashed, client);
  files.set("_headers", `${files.get("_headers") ?? ""}${clientHeaders(hashed)}`);
  return files;
}

/** Any page may import it. The name with the hash is for ever; the other one says which that is. */
function clientHeaders(hashed: string): string {
  const shared = ["Access-Control-Allow-Origin: *", "Cross-Origin-Resource-Policy: cross-origin"];
  const latest = [...shared, `Content-Location: /${hashed}`, "Access-Control-Expose-Headers: Content-Location"];
  const immutable = [...shared, "Cache-Control: public, max-age=31536000, immutable"];
  return rule("/client.js", latest) + rule(`/${hashed}`, immutable);
}

function rule(path: string, headers: readonly string[]): string {
  return `${path}\n${headers.map((header) => `  ${header}\n`).join("")}`;
}

/** A file that is as it was stays untouched: what serves the folder is told of no change. */
function write(folder: string, files: Files): void {
  for (const [name, content] of files) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    if (!existsSync(path) || !readFileSync(path).equals(Buffer.from(content))) writeWhole(path, content, folder);
  }
  for (const path of filesOf(folder)) if (!files.has(nameIn(folder, path))) rmSync(path, { force: true });
}

/** Two may build at once, and somebody may read meanwhile. */
function writeWhole(path: string, content: string | Uint8Array, folder: string): void {
  const unfinished = join(folder, "..", `.unfinished-${process.pid}`);
  writeFileSync(unfinished, content);
  renameSync(unfinished, path);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function digestOf(folder: string): string {
  const hash = createHash("sha256").update(`${withPages()}\0`);
  for (const source of sources) {
    for (const path of filesOf(join(folder, source))) {
      const content = readFileSync(path);
      hash.update(`${path.slice(folder.length)}\0${content.byteLength}\0`).update(content);
    }
  }
  return hash.digest("hex");
}

function filesOf(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return stat ? [path] : [];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

/** `npm run deploy -- --no-pages` says so to the build that wrangler starts. */
function withPages(): boolean {
  return process.env["SLUICE_PAGES"] !== "none";
}

if (import.meta.main) await buildAssets();
