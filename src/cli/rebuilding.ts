// An edit of the source, of wrangler.toml or of .dev.vars is served as soon as it can be built.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { root } from "./wrangler.ts";

const pauseMs = 200;

/**
 * Calls `rebuild` after each edit, one at a time. The files are looked at, since no system tells reliably of a folder's
 * changes, of those that editors make by renaming least of all; to look at all of them takes 2 ms.
 */
export function watchSources(rebuild: () => Promise<void>): void {
  let seen = stateOfSources() ?? "";
  const look = async () => {
    const now = stateOfSources() ?? seen;
    if (now !== seen) {
      seen = now;
      await rebuild();
    }
    setTimeout(look, pauseMs).unref();
  };
  setTimeout(look, pauseMs).unref();
}

/** Undefined where a folder vanished while it was read: it is looked at again soon. */
function stateOfSources(): string | undefined {
  try {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).map((path) => `src/${path}`);
    return [".dev.vars", "wrangler.toml", ...sources].map(stateOf).join("\n");
  } catch {
    return undefined;
  }
}

function stateOf(path: string): string {
  const stat = statSync(join(root, path), { throwIfNoEntry: false });
  return `${path} ${stat?.mtimeMs} ${stat?.size}`;
}
