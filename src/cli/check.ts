// `npm run check`: format, lint, types, stale types, and the bundle with its budget.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { readWrangler, root } from "./wrangler.ts";

const bundleBudgetBytes = 200 * 1024;

run("format and lint", "biome", ["ci", "."]);
run("types of the Worker and its tests", "tsc", ["-p", "."]);
run("types of what runs on Node", "tsc", ["-p", "test/e2e"]);
await runWrangler("generated types are fresh (else: npm run types)", [
  ...["types", "src/env.d.ts", "--include-runtime=false", "--strict-vars=false", "--check"],
]);
await checkBundle();

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

/** What is uploaded, counted as the platform counts it, and the CPU that its start takes on this machine. */
async function checkBundle(): Promise<void> {
  const outdir = mkdtempSync(join(tmpdir(), "sluice-"));
  try {
    await runWrangler("bundle", ["deploy", "--dry-run", "--minify", "--outdir", outdir]);
    const startup = await runWrangler("start-up", [
      "check",
      "startup",
      "--outfile",
      join(outdir, "startup.cpuprofile"),
    ]);
    const files = readdirSync(outdir).filter((file) => /\.(js|bin|wasm)$/.test(file));
    const gzipBytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(outdir, file))).byteLength, 0);
    const startUpCpu = /Active: ([\d.]+ ms)/.exec(startup)?.[1] ?? "unknown";
    report("bundle within its budget", gzipBytes <= bundleBudgetBytes ? 0 : 1, `${kilobytes(gzipBytes)} is over`);
    console.log(`     ${kilobytes(gzipBytes)} gzip of ${kilobytes(bundleBudgetBytes)}; start-up CPU ${startUpCpu}`);
  } finally {
    rmSync(outdir, { recursive: true });
  }
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KB`;
}
