// Installs what is missing, on whatever Node the machine has: it runs before the scripts. `install.mjs test/clients`
// installs that folder too; `install.mjs --omit=dev` only what `npm start` runs.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const isWindows = process.platform === "win32";
/** npm scripts look here first for a program. */
const ownNode = join(root, "node_modules/.bin/node");

const toRunOnly = "--omit=dev";
const args = process.argv.slice(2);
const omitsDev = args.includes(toRunOnly);
// npm runs this by the Node that it runs the scripts by.
const needsNode = !(process.features.typescript && import.meta.main !== undefined) && !runsScripts(ownNode);
// Each install waits for disk and network most of the time: they go on together.
const fetching = needsNode ? fetchNode() : undefined;
await Promise.all(["", ...args.filter((arg) => arg !== toRunOnly)].map(installMissing));
if (fetching) provideNode(await fetching);

async function installMissing(folder) {
  if (hasPackages(join(root, folder), omitsDev)) return;
  console.log(`Installing the packages of ${join(folder, "package-lock.json")} …`);
  await install(join(root, folder));
}

/** Each package of the lockfile at the version that it names, the binaries of other systems aside. */
function hasPackages(folder, withoutDev) {
  // npm writes this file last, so it is there only after an install that ended well.
  const installed = join(folder, "node_modules/.package-lock.json");
  if (!existsSync(installed)) return false;
  const read = (path) => JSON.parse(readFileSync(path, "utf8")).packages;
  const there = read(installed);
  const isWanted = ([path, { optional, dev }]) => path !== "" && !optional && !(dev && withoutDev);
  return Object.entries(read(join(folder, "package-lock.json")))
    .filter(isWanted)
    .every(([path, { version }]) => there[path]?.version === version);
}

function install(folder) {
  // `npm ci` begins by removing what is there, and a server may be running on it: the rest is added beside it.
  const how = hasPackages(folder, true) ? ["install", "--no-save"] : ["ci"];
  // The engine notices of Node 20 are for the machine's own Node; everything here runs on one that is new enough.
  const quietly = ["--no-audit", "--no-fund", "--loglevel=error"];
  const all = [...how, ...quietly, ...(omitsDev ? [toRunOnly] : [])];
  const npm = spawn("npm", all, { cwd: folder, stdio: "inherit", shell: isWindows });
  return new Promise((resolve) => {
    npm.on("error", () => process.exit(1));
    npm.on("exit", (status) => (status === 0 ? resolve() : process.exit(status ?? 1)));
  });
}

/** The scripts are TypeScript, which is to run as it stands, and ask whether they are the main module. */
function runsScripts(node) {
  const asks = "process.exit(process.features.typescript && import.meta.main !== undefined ? 0 : 1)";
  return spawnSync(node, ["--input-type=module", "--eval", asks]).status === 0;
}

/** Its lockfile is apart, so that a machine with a newer Node downloads nothing of it; its folder too, while npm makes the other one anew. */
async function fetchNode() {
  const folder = mkdtempSync(join(tmpdir(), "sluice-node-"));
  cpSync(join(root, "src/cli/node"), folder, { recursive: true });
  console.log("Installing a Node for the scripts, which need 22.18 or later …");
  await install(folder);
  return folder;
}

function provideNode(fetched) {
  const folder = join(root, "node_modules/.cache/sluice-node");
  cpSync(fetched, folder, { recursive: true });
  rmSync(fetched, { recursive: true });
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
