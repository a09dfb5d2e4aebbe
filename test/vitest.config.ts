// Two projects: what runs inside workerd with the real bindings, and what runs on Node (real processes, real clients, the sources).
import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import { leftOut } from "./left-out.ts";
import { usualAdmissions } from "./support/provided.ts";
import { testSettings } from "./support/settings.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const onNode = ["test/e2e/**/*.test.ts", "test/floors.test.ts", "test/lockfiles.test.ts", "test/readme.test.ts"];
/** They need the packages of test/clients, which has tests in its own node_modules too. */
const clients = "test/clients/*.test.ts";

// The secrets are named here too, so that wrangler warns of none, nor says where it found them.
Object.assign(process.env, testSettings);
process.env["WRANGLER_LOG"] ??= "warn";
/** Every setting, so that a `.dev.vars` of the developer's own changes nothing of what the tests see. */
const bindings = { ...readWranglerConfig({ config: `${root}wrangler.toml` }).vars, ...testSettings };

export default defineConfig({
  root,
  test: {
    // Log lines are noise until a test fails.
    silent: "passed-only",
    reporters: ["default", leftOut],
    // One a core of the smallest machine: the files on Node mostly wait for processes of their own.
    maxWorkers: 2,
    projects: [
      {
        root,
        plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" }, miniflare: { bindings } })],
        test: {
          name: "worker",
          include: ["test/**/*.test.ts"],
          exclude: [...onNode, "test/clients/**"],
          restoreMocks: true,
          setupFiles: ["test/support/fresh-file.ts"],
          // The app is imported once a worker, not once a file: that was half of the time.
          isolate: false,
          testTimeout: 30_000,
          hookTimeout: 30_000,
          provide: { plantedAdmissions: Number(process.env["PLANTED_ADMISSIONS"] ?? usualAdmissions) },
        },
      },
      {
        root,
        test: {
          ...{ name: "node", include: [...onNode, clients], setupFiles: ["test/support/fresh-process.ts"] },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
