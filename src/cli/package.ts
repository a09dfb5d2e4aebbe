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
// What lies in .bin is no program that Windows starts by this name.
const compiler = join(root, "node_modules/typescript/bin/tsc");
const types = spawnSync(process.execPath, [compiler, "-p", "src/client"], { cwd: root, stdio: "inherit" });
if (types.status !== 0) {
  const how = types.error?.message ?? types.signal ?? `exit code ${types.status}`;
  console.error(`The types of the client were not made: ${how}.`);
  process.exit(1);
}
// Node runs no TypeScript of a package. What asks whether it is the main module is none here.
await build({
  ...shared,
  entryPoints: { start: "src/cli/start-packaged.ts" },
  outdir: "dist/cli",
  splitting: true,
  platform: "node",
  target: "node22",
  define: { "import.meta.main": "false" },
  banner: { js: "#!/usr/bin/env node" },
});
