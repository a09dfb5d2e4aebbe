// Makes the pages of src/site: their scripts by esbuild, their HTML by running its own TSX, the reference of the routes by
// asking the Worker's bundle for its OpenAPI document.
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { openBundler, sayFaults } from "./bundle.ts";
import { nameIn } from "./file-names.ts";
import type { Given, MakePages } from "./pages/given.ts";
import { readWorkerConfig } from "./worker-config.ts";

/** By name, as they lie in the folder. */
export type Files = Map<string, string | Uint8Array>;

const scripts = ["playground/playground.tsx", "gallery/gallery.tsx", "account/account.tsx", "docs/docs.tsx"];
const turnstileHost = "https://challenges.cloudflare.com";

export async function siteFiles(folder: string): Promise<Files> {
  const { main, vars } = readWorkerConfig(join(folder, "wrangler.toml"));
  const siteKey = String(vars["TURNSTILE_SITE_KEY"] ?? "") || undefined;
  const [openApi, built, { pages }] = await Promise.all([
    readOpenApi(main, folder),
    buildScripts(folder),
    loadPages(folder),
  ]);
  const files: Files = new Map([...built, ...picturesOf(folder)]);
  const given: Given = { docs: readDocs(folder), openApi, turnstileSiteKey: siteKey };
  for (const [name, html] of pages(given)) files.set(name, html);
  for (const name of ["style.css", "icon.svg"]) files.set(`site/${name}`, readFileSync(join(folder, "src/site", name)));
  files.set("_headers", headers(siteKey !== undefined));
  return files;
}

/** Scripts, styles and connections are our own. With Turnstile its one host is trusted too. */
function headers(hasTurnstile: boolean): string {
  const challenge = hasTurnstile ? ` ${turnstileHost}` : "";
  const policy = [
    "default-src 'none'",
    `script-src 'self'${challenge}`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob: data: https:",
    "media-src 'self' blob: data: https:",
    ...(hasTurnstile ? [`frame-src${challenge}`] : []),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const lines = [
    `Content-Security-Policy: ${policy.join("; ")}`,
    "X-Content-Type-Options: nosniff",
    "Referrer-Policy: no-referrer",
    "Strict-Transport-Security: max-age=31536000",
    "Permissions-Policy: camera=(), microphone=(), geolocation=()",
  ];
  return `/*\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

/** What the pages share lies in files of its own, which a browser fetches once. */
async function buildScripts(folder: string): Promise<Files> {
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: scripts.map((script) => join("src/site", script)),
    outdir: "site",
    entryNames: "[name]",
    chunkNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    // The names of shared files follow from what is in them, wherever the checkout lies.
    preserveSymlinks: true,
    write: false,
    format: "esm",
    target: "es2022",
    minify: true,
    logLevel: "silent",
    tsconfig: join(folder, "src/site/tsconfig.json"),
  }).catch(sayFaults);
  return new Map(outputFiles.map(({ path, contents }) => [nameIn(folder, path), contents]));
}

async function loadPages(folder: string): Promise<{ pages: MakePages }> {
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: ["src/cli/pages/pages.tsx"],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    logLevel: "silent",
    tsconfig: join(folder, "src/cli/pages/tsconfig.json"),
  }).catch(sayFaults);
  return load(outputFiles[0]?.text ?? "");
}

const secret = "a value that only this process ever sees";
const settings = { LOCAL: "true", SIGNING_SECRET: secret, ADMIN_TOKEN: secret, PLATFORM_API_KEY: secret };
const noObjects = "data:text/javascript,export class DurableObject {} export class WorkerEntrypoint {}";

/** As a deployment of this very code would answer. */
async function readOpenApi(main: string, folder: string): Promise<unknown> {
  const bundler = await openBundler(main, folder);
  const { code } = await bundler.build();
  await bundler.close();
  const { default: worker } = await load<{ default: { fetch: (...given: unknown[]) => Promise<Response> } }>(
    code.replaceAll('"cloudflare:workers"', JSON.stringify(noObjects)),
  );
  // The Worker logs each exchange, and this one is nobody's.
  const { log } = console;
  console.log = () => {};
  try {
    const context = { waitUntil() {}, passThroughOnException() {} };
    const answer = await worker.fetch(new Request("http://localhost/openapi.json"), settings, context);
    return await answer.json();
  } finally {
    console.log = log;
  }
}

/** A module is imported from a file; the same text is imported once. */
async function load<Module>(code: string): Promise<Module> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-site-"));
  try {
    const file = join(folder, `${createHash("sha256").update(code).digest("hex")}.mjs`);
    writeFileSync(file, code);
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readDocs(folder: string): Map<string, string> {
  const names = docsOf(folder).filter((name) => name.endsWith(".md"));
  return new Map(names.map((name) => [name.slice(0, -3), readFileSync(join(folder, "docs", name), "utf8")]));
}

function picturesOf(folder: string): Files {
  const names = docsOf(folder).filter((name) => /\.(png|jpg|jpeg|webp|svg)$/.test(name));
  return new Map(
    names.map((name) => [nameIn(folder, join(folder, "docs", name)), readFileSync(join(folder, "docs", name))]),
  );
}

/** A package has none. */
function docsOf(folder: string): string[] {
  const docs = join(folder, "docs");
  return existsSync(docs) ? readdirSync(docs, { recursive: true, encoding: "utf8" }).sort() : [];
}
