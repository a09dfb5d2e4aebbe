// An edit of the source, of wrangler.toml or of .dev.vars is served as soon as it can be built.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { root } from "./wrangler.ts";

/** Looking at all files takes CPU. So it is done seldom, and soon again where something changes. */
const pauseMs = { usual: 500, changing: 50 };

/**
 * The files are looked at again and again, since no system tells reliably of a folder's changes, of those that editors
 * make by renaming least of all. Made before the sources are read, it misses no edit.
 */
export class SourceWatch {
  readonly #devVars: string;
  #seen: string | undefined;

  constructor(devVars: string) {
    this.#devVars = devVars;
    this.#seen = stateOfSources(devVars);
  }

  /** Calls `rebuild` after each edit, one at a time. What is seen twice alike has been written whole. */
  tell(rebuild: () => Promise<void>): void {
    let before: string | undefined;
    const look = async () => {
      const now = stateOfSources(this.#devVars);
      if (now !== undefined && now === before && now !== this.#seen) {
        this.#seen = now;
        await rebuild();
      }
      before = now;
      setTimeout(look, now === this.#seen ? pauseMs.usual : pauseMs.changing).unref();
    };
    setTimeout(look, pauseMs.usual).unref();
  }
}

/** Undefined where a folder vanished while it was read: it is looked at again soon. */
function stateOfSources(devVars: string): string | undefined {
  try {
    return [devVars, join(root, "wrangler.toml")].map(stateOf).join("\n") + stateOfFiles("src") + stateOfFiles("docs");
  } catch {
    return undefined;
  }
}

/** Another text where a file of the folder was changed, made or removed. */
export function stateOfFiles(folder: string): string {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return files.map((path) => stateOf(join(root, folder, path))).join("\n");
}

function stateOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return `${path} ${stat?.mtimeMs} ${stat?.size}`;
}
