// Files that others read at any moment: written beside their place, and put there whole.
import { linkSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** For this user alone, whatever it holds. */
const mode = 0o600;

/** Answers whether it is there by this call: of two that write at once, the first wins. */
export function writeFirst(path: string, text: string): boolean {
  return placed(path, text, (unfinished) => {
    try {
      linkSync(unfinished, path);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      return withoutLinks(path, text);
    }
  });
}

/** A disk that knows no links, such as a memory stick's. */
function withoutLinks(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { mode, flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** In place of what is there. */
export function writeOver(path: string, text: string): void {
  placed(path, text, (unfinished) => renameSync(unfinished, path));
}

function placed<T>(path: string, text: string, place: (unfinished: string) => T): T {
  const unfinished = `${path}.unfinished-${process.pid}`;
  try {
    writeFileSync(unfinished, text, { mode });
    return place(unfinished);
  } finally {
    rmSync(unfinished, { force: true });
  }
}
