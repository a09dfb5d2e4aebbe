// Installs what is missing, on whatever Node the machine has: it runs before the scripts. `install.mjs test/clients` installs that folder too.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const isWindows = process.platform === "win32";
/** npm scripts look here first for a program. */
const ownNode = join(root, "node_modules/.bin/node");

for (const folder of ["", ...process.argv.slice(2)]) {
  if (isUpToDate(join(root, folder))) continue;
  console.log(`Installing the packages of ${join(folder, "package-lock.json")} …`);
  install(join(root, folder));
}
if (!runsScripts("node") && !runsScripts(ownNode)) provideNode();

/** Each package of the lockfile at the version that it names, the binaries of other systems aside. */
function isUpToDate(folder) {
  // npm writes this file last, so it is there, and newer than the lockfile, only after an install that ended well.
  const installed = join(folder, "node_modules/.package-lock.json");
  const lockfile = join(folder, "package-lock.json");
  if (!existsSync(installed)) return false;
  if (statSync(installed).mtimeMs >= statSync(lockfile).mtimeMs) return true;
  const read = (path) => JSON.parse(readFileSync(path, "utf8")).packages;
  const there = read(installed);
  return Object.entries(read(lockfile)).every(
    ([path, wanted]) => path === "" || wanted.optional || there[path]?.version === wanted.version,
  );
}

function install(folder) {
  // The engine notices of Node 20 are for the machine's own Node; everything here runs on one that is new enough.
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: "inherit", shell: isWindows });
  if (status !== 0) process.exit(status ?? 1);
}

/** The scripts are TypeScript, which is to run as it stands, and ask whether they are the main module. */
function runsScripts(node) {
  const asks = "process.exit(process.features.typescript && import.meta.main !== undefined ? 0 : 1)";
  return spawnSync(node, ["--input-type=module", "--eval", asks]).status === 0;
}

/** Its lockfile is apart, so that a machine with a newer Node downloads nothing of it. */
function provideNode() {
  const folder = join(root, "node_modules/.cache/sluice-node");
  cpSync(join(root, "src/cli/node"), folder, { recursive: true });
  console.log("Installing a Node for the scripts, which need 22.18 or later …");
  install(folder);
  const { optionalDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const programs = Object.keys(optionalDependencies).map((name) => join(folder, "node_modules", name, "bin/node"));
  const [program] = programs.filter(existsSync);
  rmSync(ownNode, { force: true });
  if (program) symlinkSync(relative(dirname(ownNode), program), ownNode);
  if (runsScripts(ownNode)) return;
  console.error(
    `The scripts need Node 22.18 or later, and there is none to install for ${process.platform} on ${process.arch}: see https://nodejs.org`,
  );
  process.exit(1);
}
