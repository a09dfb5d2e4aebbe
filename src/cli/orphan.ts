// Who serves a state, noted beside it: one Node at a time, and its workerd. A Node that is killed cannot end its workerd,
// which then holds the port and the state: the next start ends it.
import { type ChildProcess, execFileSync } from "node:child_process";
import { type ChannelListener, subscribe } from "node:diagnostics_channel";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

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
  while (!writeFirst(state)) {
    const running = await readRecord(state);
    if (running && running.node.pid !== process.pid && isStill(running.node)) return running.node.pid;
    if (running?.workerd && isStill(running.workerd)) {
      process.kill(running.workerd.pid, "SIGKILL");
      await ended(running.workerd.pid);
    }
    rmSync(recordIn(state), { force: true });
  }
  process.on("exit", () => rmSync(recordIn(state), { force: true }));
  return undefined;
}

function writeFirst(state: string): boolean {
  try {
    writeFileSync(recordIn(state), JSON.stringify({ node: own } satisfies Running), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Miniflare does not say which process it started; Node tells of each one. A restarted workerd is recorded anew. */
export function recordWorkerd(state: string): void {
  const listen: ChannelListener = (message) => {
    const { process: child } = message as { process: ChildProcess };
    child.once("spawn", () => {
      if (child.pid === undefined || !/^workerd(\.exe)?$/.test(basename(child.spawnfile))) return;
      const running: Running = { node: own, workerd: { pid: child.pid, command: child.spawnargs } };
      writeFileSync(recordIn(state), JSON.stringify(running));
    });
  };
  subscribe("child_process", listen);
}

const readPauseMs = 50;

/** Undefined where whoever wrote it was killed in the middle; it may also be in the middle now. */
async function readRecord(state: string, isLast = false): Promise<Running | undefined> {
  try {
    return JSON.parse(readFileSync(recordIn(state), "utf8"));
  } catch {
    if (isLast) return undefined;
    await new Promise((resolve) => setTimeout(resolve, readPauseMs));
    return readRecord(state, true);
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
