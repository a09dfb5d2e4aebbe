// How a file that has a link is cached: by browsers until the link ends, and by the cache that Cloudflare keeps in front of the
// Worker until it has to ask again whether the link is still there. A hit there does not run the Worker.
import type { Config } from "../../config.ts";
import { nameOfFault } from "../../errors.ts";
import { headersForAnyone } from "../../http/cors.ts";

/**
 * A purge clears what is cached by then. KV may tell of a deleted link for a minute more, and so fill the cache once more:
 * this is as long as that copy can live.
 */
const edgeSeconds = 60 * 60;
/** Purges are limited by the minute. */
const pausesMs = [1_000, 5_000, 15_000];

export interface PublicFile {
  /** What a purge names it by: printable, and the same for every answer of the link. */
  readonly tag: string;
  readonly expiresAt: number;
  readonly config: Pick<Config, "allowedOrigins">;
  readonly now: number;
}

type CachedContext = Pick<ExecutionContext, "waitUntil" | "cache">;

/** Whether the answer goes into that cache, which cuts ranges out of a whole file itself. It is unknown where there is none. */
export function hasCacheInFront({ cache }: CachedContext): boolean {
  return cache !== undefined;
}

export function cacheForBrowsers({ expiresAt, now }: Pick<PublicFile, "expiresAt" | "now">): string {
  return `public, max-age=${secondsLeft(expiresAt, now)}, immutable`;
}

export function publicHeaders(file: PublicFile): Record<string, string> {
  const { tag, expiresAt, config, now } = file;
  // A link that is over is served by no stale copy either, whatever happens to the Worker.
  const seconds = Math.min(edgeSeconds, secondsLeft(expiresAt, now));
  return {
    "Cache-Control": cacheForBrowsers(file),
    "Cloudflare-CDN-Cache-Control": `public, max-age=${seconds}, must-revalidate`,
    "Cache-Tag": tag,
    "Accept-Ranges": "bytes",
    "Cross-Origin-Resource-Policy": "cross-origin",
    // Also without an Origin: the same copy may be handed to a canvas later.
    ...headersForAnyone(config.allowedOrigins),
  };
}

function secondsLeft(expiresAt: number, now: number): number {
  return Math.max(0, Math.floor((expiresAt - now) / 1000));
}

/** What is left of it in front of the Worker is out of reach of whoever has the link. */
export function purge(ctx: CachedContext, tag: string): void {
  if (ctx.cache) ctx.waitUntil(purgeFrom(ctx.cache, tag));
}

async function purgeFrom(cache: CacheContext, tag: string): Promise<void> {
  for (const pauseMs of [...pausesMs, undefined]) {
    const fault = await purgeOnce(cache, tag);
    if (fault === undefined) return;
    if (pauseMs === undefined) console.error(JSON.stringify({ cache: "a deleted file was not purged", error: fault }));
    else await scheduler.wait(pauseMs);
  }
}

/** Undefined where it was taken. */
async function purgeOnce(cache: CacheContext, tag: string): Promise<string | undefined> {
  try {
    const { success, errors } = await cache.purge({ tags: [tag] });
    return success ? undefined : errors.map(({ code }) => code).join(", ");
  } catch (error) {
    return nameOfFault(error);
  }
}
