// `npm run keep-release`, at a release: keeps today's bundle as the last release, for the tests of releases.test.ts.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import manifest from "../../package.json" with { type: "json" };
import { todaysBuild } from "../support/serve-bundle.ts";
import { compressed, keptReleases, releasesFolder, servedKinds } from "./kept.ts";

const { folder, wranglerToml } = await todaysBuild();
const release = join(releasesFolder, manifest.version);
// Only the release before this one is ever met in a deployment.
for (const kept of keptReleases()) rmSync(join(releasesFolder, kept), { recursive: true });
mkdirSync(release);
let bytes = 0;
for (const file of readdirSync(folder).filter((name) => servedKinds.includes(extname(name)))) {
  const packed = brotliCompressSync(readFileSync(join(folder, file)));
  writeFileSync(join(release, file + compressed), packed);
  bytes += packed.byteLength;
}
writeFileSync(join(release, "wrangler.toml"), readFileSync(wranglerToml));
console.log(`Kept ${manifest.version}, ${Math.ceil(bytes / 1024)} KB. Commit test/releases.`);
