// Ctrl-C and its like in the middle of something: the programs that were started end first, then this process. What must
// not outlive it is removed, however it ends.
import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { constants } from "node:os";

const running = new Set<ChildProcess>();
const leftovers = new Set<string>();

process.once("exit", () => leftovers.forEach(remove));

/** Answers how to remove it before. */
export function removeAtEnd(path: string): () => void {
  leftovers.add(path);
  return () => {
    remove(path);
    leftovers.delete(path);
  };
}

function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** An interruption waits for its end. */
export function endFirst(child: ChildProcess): void {
  running.add(child);
  for (const event of ["exit", "error"]) child.once(event, () => running.delete(child));
}

/** A second interruption waits for nothing. */
export function endWhenInterrupted(): void {
  let isEnding = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // As a shell tells of it.
    const code = 128 + constants.signals[signal];
    process.on(signal, () => {
      if (isEnding || running.size === 0) process.exit(code);
      isEnding = true;
      for (const child of running) {
        for (const event of ["exit", "error"]) child.once(event, () => running.size === 0 && process.exit(code));
        child.kill(signal);
      }
    });
  }
}
