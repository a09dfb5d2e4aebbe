// `npm run check`: format, lint, types, stale types, and the bundle with its budget.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundleForBrowsers } from "./bundle.ts";
import { clientTypes, clientTypesFile } from "./client-types.ts";
import { readWrangler, root } from "./wrangler.ts";

/** Of each entry: with the embedded platform, and in front of a real service alone. */
const bundleBudgets = { "src/index.ts": 240 * 1024, "src/gateway-only.ts": 165 * 1024 };
/** What an app adds to what its users download. */
const clientBudgets = { "src/client/index.ts": 4.15 * 1024, "src/client/react.ts": 1024 };

run("format and lint", "biome", ["ci", "."]);
run("types of the Worker and its tests", "tsc", ["-p", "."]);
run("types of what runs on Node", "tsc", ["-p", "test/e2e"]);
run("types of the client", "tsc", ["-p", "src/client", "--noEmit", "--emitDeclarationOnly", "false"]);
run("types of the pages", "tsc", ["-p", "src/site"]);
run("types of what the pages are made by", "tsc", ["-p", "src/cli/pages"]);
const areFresh = readFileSync(clientTypesFile, "utf8") === clientTypes();
report("types of the models are fresh", areFresh ? 0 : 1, "npm run types writes them anew.");
await checkClient();
await runWrangler("generated types are fresh (else: npm run types)", [
  "types",
  "src/env.d.ts",
  "--include-runtime=false",
  "--strict-vars=false",
  "--check",
]);
for (const [main, budgetBytes] of Object.entries(bundleBudgets)) await checkBundle(main, budgetBytes);

function run(step: string, tool: string, args: string[]): void {
  const { status, stdout, stderr } = spawnSync(`${root}node_modules/.bin/${tool}`, args, {
    cwd: root,
    encoding: "utf8",
  });
  report(step, status, stdout + stderr);
}

async function runWrangler(step: string, args: string[]): Promise<string> {
  const { status, output } = await readWrangler(args);
  report(step, status, output);
  return output;
}

function report(step: string, status: number | null, output: string): void {
  console.log(`${status === 0 ? "ok  " : "FAIL"} ${step}`);
  if (status === 0) return;
  console.error(output);
  process.exit(1);
}

async function checkClient(): Promise<void> {
  for (const [main, budgetBytes] of Object.entries(clientBudgets)) {
    const { byteLength } = gzipSync(await bundleForBrowsers(main), { level: 9 });
    const said = `${byteLength} of ${budgetBytes} bytes gzip`;
    report(`${main} within its budget: ${said}`, byteLength <= budgetBytes ? 0 : 1, "It is over.");
  }
}

/** Measures the upload as Cloudflare counts it, and the CPU time of its start on this machine. */
async function checkBundle(main: string, budgetBytes: number): Promise<void> {
  const outdir = mkdtempSync(join(tmpdir(), "sluice-"));
  try {
    await runWrangler(`bundle of ${main}`, ["deploy", main, "--dry-run", "--minify", "--outdir", outdir]);
    const startup = await runWrangler(`start-up of ${main}`, [
      ...["check", "startup", "--args", `${main} --minify`],
      ...["--outfile", join(outdir, "startup.cpuprofile")],
    ]);
    const files = readdirSync(outdir).filter((file) => /\.(js|bin|wasm)$/.test(file));
    const gzipBytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(outdir, file))).byteLength, 0);
    const startUpCpu = /Active: ([\d.]+ ms)/.exec(startup)?.[1] ?? "unknown";
    report(`${main} within its budget`, gzipBytes <= budgetBytes ? 0 : 1, `${kilobytes(gzipBytes)} is over`);
    console.log(`     ${kilobytes(gzipBytes)} gzip of ${kilobytes(budgetBytes)}; start-up CPU ${startUpCpu}`);
  } finally {
    rmSync(outdir, { recursive: true });
  }
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KB`;
}
