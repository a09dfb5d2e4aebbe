// The last release, as it was deployed: its bundle and the wrangler.toml that it was built with.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import type { Build } from "../support/serve-config.ts";

export const releasesFolder = import.meta.dirname;
export const compressed = ".br";
/** Of a bundle's files those that are served; maps and notes are not kept. */
export const servedKinds = [".js", ".wasm", ".bin", ".txt"];

/** The versions that are kept: one, but for a moment while the next is being kept. */
export function keptReleases(): string[] {
  const entries = readdirSync(releasesFolder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Unpacked, to be served; whoever asks removes it afterwards. */
export function unpackLastRelease(): Build & { remove: () => void } {
  const [version, ...others] = keptReleases();
  if (version === undefined || others.length > 0) throw new Error("npm run keep-release keeps exactly one release");
  const release = join(releasesFolder, version);
  const folder = mkdtempSync(join(tmpdir(), "sluice-"));
  for (const file of readdirSync(release).filter((name) => name.endsWith(compressed))) {
    writeFileSync(join(folder, basename(file, compressed)), brotliDecompressSync(readFileSync(join(release, file))));
  }
  return { folder, wranglerToml: join(release, "wrangler.toml"), remove: () => rmSync(folder, { recursive: true }) };
}
