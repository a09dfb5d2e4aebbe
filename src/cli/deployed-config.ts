// wrangler.toml, as a deployment changes it: the answer that is kept, and the copy without the bucket.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "smol-toml";
import { removeAtEnd } from "./interruption.ts";

const upstreamLine = /^UPSTREAM_URL = "[^"\n]*"$/m;

/** The next deployment asks no more. */
export function keepUpstream(folder: string, url: string): void {
  const file = join(folder, "wrangler.toml");
  const text = readFileSync(file, "utf8");
  if (!upstreamLine.test(text)) throw new Error('wrangler.toml has no line UPSTREAM_URL = "…" under [vars].');
  writeFileSync(
    file,
    text.replace(upstreamLine, () => `UPSTREAM_URL = ${JSON.stringify(url)}`),
  );
}

const copyName = "wrangler.without-r2.toml";

/** Beside wrangler.toml, since its paths begin there. Gone once the work is done. */
export async function withoutBucket<T>(folder: string, work: (configArgs: string[]) => Promise<T>): Promise<T> {
  const { r2_buckets: _, ...others } = parse(readFileSync(join(folder, "wrangler.toml"), "utf8"));
  const copy = join(folder, copyName);
  const remove = removeAtEnd(copy);
  try {
    writeFileSync(copy, `# Written by npm run deploy, for this one deployment.\n${stringify(others)}\n`);
    return await work(["--config", copyName]);
  } finally {
    remove();
  }
}

const gatewayOnly = "src/gateway-only.ts";

/** In front of a real service the gateway stands alone: neither platform nor samples. */
export function entryFor(folder: string, upstreamUrl: string): string[] {
  return upstreamUrl !== "" && existsSync(join(folder, gatewayOnly)) ? [gatewayOnly] : [];
}
