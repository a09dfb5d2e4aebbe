// Who serves a state, noted beside it: one Node at a time, and its workerd. A Node that is killed cannot end its workerd,
// which then holds the port and the state: the next start ends it.
import { type ChildProcess, execFileSync } from "node:child_process";
import { type ChannelListener, subscribe } from "node:diagnostics_channel";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { writeFirst, writeOver } from "./whole-file.ts";

interface Process {
  readonly pid: number;
  /** Words of what it was started with: a pid is given to others once its process has ended, and these tell them apart. */
  readonly command: readonly string[];
}

interface Running {
  readonly node: Process;
  /** Absent until it was started. */
  readonly workerd?: Process;
}

const recordIn = (state: string) => join(state, "processes.json");
const own: Process = { pid: process.pid, command: [basename(process.argv[1] ?? "")] };

/**
 * Makes the state this process's until it ends; of two that ask at once, one gets it. Undefined then, else the pid of
 * the Node that serves it. Where only the workerd of one is left, that is ended.
 */
export async function claimState(state: string): Promise<number | undefined> {
  mkdirSync(state, { recursive: true });
  while (!writeFirst(recordIn(state), noted({ node: own }))) {
    const { text, running } = readRecord(state);
    if (running && running.node.pid !== process.pid && isStill(running.node)) return running.node.pid;
    if (running?.workerd && isStill(running.workerd)) {
      process.kill(running.workerd.pid, "SIGKILL");
      await ended(running.workerd.pid);
    }
    removeStale(state, text);
  }
  process.on("exit", () => isOwn(state) && rmSync(recordIn(state), { force: true }));
  return undefined;
}

const noted = (running: Running) => JSON.stringify(running);

/**
 * Removes what was read. Another start may have found the same record, removed it, and written its own meanwhile: what is
 * moved away and is something else is put back.
 */
export function removeStale(state: string, read: string): void {
  if (readRecord(state).text !== read) return;
  const [record, aside] = [recordIn(state), `${recordIn(state)}.stale-${process.pid}`];
  try {
    renameSync(record, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (readFileSync(aside, "utf8") !== read) putBack(aside, record);
  rmSync(aside, { force: true });
}

function putBack(aside: string, record: string): void {
  try {
    linkSync(aside, record);
  } catch (error) {
    // Its owner has written it anew. On a disk without links nothing stands there.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") renameSync(aside, record);
  }
}

function isOwn(state: string): boolean {
  return readRecord(state).running?.node?.pid === process.pid;
}

/** Miniflare does not say which process it started; Node tells of each one. A restarted workerd is recorded anew. */
export function recordWorkerd(state: string): void {
  const listen: ChannelListener = (message) => {
    const { process: child } = message as { process: ChildProcess };
    child.once("spawn", () => {
      if (child.pid === undefined || !/^workerd(\.exe)?$/.test(basename(child.spawnfile))) return;
      writeOver(recordIn(state), noted({ node: own, workerd: { pid: child.pid, command: child.spawnargs } }));
    });
  };
  subscribe("child_process", listen);
}

/** What stands there, and what of it can be understood. */
function readRecord(state: string): { text: string; running?: Running } {
  let text = "";
  try {
    text = readFileSync(recordIn(state), "utf8");
    return { text, running: JSON.parse(text) };
  } catch {
    return { text };
  }
}

function isStill({ pid, command }: Process): boolean {
  const line = isAlive(pid) ? commandLine(pid) : undefined;
  return line !== undefined && command.every((word) => line.includes(word));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** As the system tells it; undefined where the process ended meanwhile. */
function commandLine(pid: number): string | undefined {
  try {
    if (process.platform === "linux") return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    const ask = (tool: string, args: string[]) => execFileSync(tool, args, { encoding: "utf8", windowsHide: true });
    if (process.platform !== "win32") return ask("ps", ["-ww", "-o", "command=", "-p", `${pid}`]);
    const query = `(Get-CimInstance Win32_Process -Filter "ProcessId=${pid}").CommandLine`;
    return ask("powershell", ["-NoProfile", "-Command", query]);
  } catch {
    return undefined;
  }
}

const endsWithinMs = 2000;

async function ended(pid: number): Promise<void> {
  const deadline = Date.now() + endsWithinMs;
  while (isAlive(pid) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
}
