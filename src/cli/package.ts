// `npm pack` runs it: what an app gets as a package. The client with its types, the hooks, and the gateway to be started.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { buildAssets } from "./assets.ts";
import { root } from "./wrangler.ts";

const shared = { absWorkingDir: root, bundle: true, format: "esm", packages: "external", logLevel: "warning" } as const;

for (const built of ["dist/client", "dist/cli"]) rmSync(join(root, built), { recursive: true, force: true });
await buildAssets();
await build({
  ...shared,
  entryPoints: ["src/client/index.ts", "src/client/react.ts"],
  outdir: "dist/client",
  target: "es2022",
});
const types = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", "src/client"], { cwd: root, stdio: "inherit" });
if (types.status !== 0) process.exit(1);
// Node runs no TypeScript of a package. What asks whether it is the main module is none here.
await build({
  ...shared,
  entryPoints: ["src/cli/start.ts"],
  outdir: "dist/cli",
  splitting: true,
  platform: "node",
  target: "node20",
  define: { "import.meta.main": "false" },
  banner: { js: "#!/usr/bin/env node" },
});
