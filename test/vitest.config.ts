// Two projects: what runs inside workerd with the real bindings, and what runs on Node (real processes, real clients, the sources).
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { testSettings } from "./support/settings.ts";

const root = new URL("..", import.meta.url).pathname;
const onNode = ["test/e2e/**/*.test.ts", "test/floors.test.ts"];

// A `.dev.vars` of the developer's own must not change what the tests see, nor its absence warn.
Object.assign(process.env, testSettings);

export default defineConfig({
  root,
  test: {
    projects: [
      {
        root,
        plugins: [
          cloudflareTest({
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: { bindings: testSettings },
          }),
        ],
        test: { name: "worker", include: ["test/**/*.test.ts"], exclude: onNode },
      },
      { root, test: { name: "node", include: onNode, testTimeout: 60_000, hookTimeout: 60_000 } },
    ],
  },
});
