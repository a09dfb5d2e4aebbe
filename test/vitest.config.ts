// What runs inside workerd with the real bindings, and what runs on Node (real processes, real clients, the sources).
// `npm run test:full` sets the mode `full`: twenty times the amounts, no time cut short, and the tests that take minutes.
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { buildAssets } from "../src/cli/assets.ts";
import { howLong } from "./how-long.ts";
import { leftOut } from "./left-out.ts";
import { LongestFirst } from "./longest-first.ts";
import { memoryDisk } from "./support/memory-disk.ts";
import { testSettings } from "./support/settings.ts";

// wrangler.toml names what it builds.
await buildAssets();

const root = fileURLToPath(new URL("..", import.meta.url));
const onNode = [
  "test/e2e/**/*.test.ts",
  "test/client/**/*.test.ts",
  "test/floors.test.ts",
  "test/lockfiles.test.ts",
  "test/readme.test.ts",
];
/** They need the packages of test/clients, which has tests in its own node_modules too. */
const clients = "test/clients/*.test.ts";
const minutesLong = "test/full/**/*.test.ts";

// The secrets are named here too, so that wrangler warns of none, nor says where it found them.
Object.assign(process.env, testSettings);
process.env["WRANGLER_LOG"] ??= "warn";
/** Every setting, so that a `.dev.vars` of the developer's own changes nothing of what the tests see. */
const bindings = { ...readWranglerConfig({ config: `${root}wrangler.toml` }).vars, ...testSettings };

/** The pool keeps what the bindings store in the folder for temporary files; on a disk, each commit waits for it. */
const temporaryFolder = tmpdir();
process.env["TMPDIR"] = memoryDisk() ?? temporaryFolder;

export default defineConfig(({ mode }) => {
  const isFull = mode === "full";
  const worker = {
    root,
    plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" }, miniflare: { bindings } })],
    test: {
      name: "worker",
      include: ["test/**/*.test.ts"],
      exclude: [...onNode, "test/clients/**", minutesLong],
      restoreMocks: true,
      setupFiles: ["test/support/fresh-file.ts"],
      // The app is imported once a worker, not once a file: that was half of the time.
      isolate: false,
      testTimeout: isFull ? 300_000 : 30_000,
      hookTimeout: 30_000,
    },
  };
  const ofProcesses = {
    env: { TMPDIR: temporaryFolder },
    setupFiles: ["test/support/fresh-process.ts"],
    isolate: false,
  };
  const node = {
    root,
    test: {
      ...ofProcesses,
      name: "node",
      include: [...onNode, clients],
      // Passes long before, but on a machine that is busy with something else.
      testTimeout: 150_000,
      hookTimeout: 90_000,
    },
  };
  const full = {
    root,
    test: {
      ...ofProcesses,
      name: "full",
      include: [minutesLong],
      // After all others and one at a time, since they watch a server's memory and patience.
      maxWorkers: 1,
      sequence: { groupOrder: 1 },
      testTimeout: 600_000,
      hookTimeout: 120_000,
    },
  };
  return {
    root,
    test: {
      // Log lines are noise until a test fails.
      silent: "passed-only" as const,
      reporters: ["default", howLong(isFull), leftOut],
      // Of two cores, the smallest machine's: a third of the time a file waits for a process, an alarm or a deadline.
      maxWorkers: 3,
      sequence: { sequencer: LongestFirst },
      provide: { isFull, seed: isFull && !process.env["CI"] ? null : 20_311_114 },
      projects: isFull ? [worker, node, full] : [worker, node],
    },
  };
});
