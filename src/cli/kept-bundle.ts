// The bundle of the last start. It is served again where nothing that it was made of has changed: to make one is half of
// what a start takes.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Bundle } from "./bundle.ts";
import { writeOver } from "./whole-file.ts";
import { root } from "./wrangler.ts";

interface Kept extends Bundle {
  readonly digest: string;
}

/** What decides of a bundle beside its sources: how it is made, and which packages there are. */
const around = [
  "src/cli/bundle.ts",
  "wrangler.toml",
  "tsconfig.json",
  "package.json",
  "node_modules/.package-lock.json",
];

const fileIn = (state: string) => join(state, "bundle.json");

/** Undefined where there is none, or where it was made of something else. */
export function readKept(state: string): Bundle | undefined {
  try {
    const kept: Kept = JSON.parse(readFileSync(fileIn(state), "utf8"));
    return kept.digest === digestOf(kept.inputs) ? kept : undefined;
  } catch {
    // A source is gone, or the file is.
    return undefined;
  }
}

/** Whoever is killed in the middle leaves the one before. Without one the next start is slower, and no worse. */
export function keepBundle(state: string, bundle: Bundle): void {
  try {
    const kept: Kept = { ...bundle, digest: digestOf(bundle.inputs) };
    writeOver(fileIn(state), JSON.stringify(kept));
  } catch {
    // A source vanished meanwhile, or packages were installed by another tool than npm.
  }
}

function digestOf(inputs: readonly string[]): string {
  const hash = createHash("sha256");
  for (const path of [...around, ...inputs]) {
    const content = readFileSync(join(root, path));
    hash.update(`${path}\0${content.byteLength}\0`).update(content);
  }
  return hash.digest("hex");
}
