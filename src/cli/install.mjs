// Installs what is missing, on whatever Node the machine has: it runs before the pinned one is there.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";

const root = new URL("../../", import.meta.url);
/** npm writes this file last, so it is there, and newer than the lockfile, only after an install that ended well. */
const installed = new URL("node_modules/.package-lock.json", root);

/** Each package of the lockfile at the version that it names, the binaries of other systems aside. */
function isUpToDate() {
  if (!existsSync(installed)) return false;
  if (statSync(installed).mtimeMs >= statSync(new URL("package-lock.json", root)).mtimeMs) return true;
  const read = (url) => JSON.parse(readFileSync(url, "utf8")).packages;
  const there = read(installed);
  return Object.entries(read(new URL("package-lock.json", root))).every(
    ([path, wanted]) => path === "" || wanted.optional || there[path]?.version === wanted.version,
  );
}

if (!isUpToDate()) {
  console.log("Installing the packages of package-lock.json …");
  // The engine notices of Node 20 are for the machine's own Node; everything here runs on the pinned one.
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  process.exitCode = status ?? 1;
}
