// `npm run test:full`: what takes minutes. It runs on Node, against `npm start` as a user starts it.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const root = fileURLToPath(new URL("../..", import.meta.url));

export default defineConfig({
  root,
  test: {
    silent: "passed-only",
    setupFiles: ["test/support/fresh-process.ts"],
    include: ["test/full/**/*.test.ts"],
    // Memory and time are measured: one file at a time.
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
});
