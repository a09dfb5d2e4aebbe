// The pid of workerd, kept beside the state. A Node that is killed cannot end its workerd, which then holds the port
// and the state: the next start ends it.
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
  readonly workerd: Process;
}

const recordIn = (state: string) => join(state, "processes.json");

/** Miniflare does not say which process it started; Node tells of each one. A restarted workerd is recorded anew. */
export function recordWorkerd(state: string): void {
  mkdirSync(state, { recursive: true });
  const node = { pid: process.pid, command: [basename(process.argv[1] ?? "")] };
  const listen: ChannelListener = (message) => {
    const { process: child } = message as { process: ChildProcess };
    child.once("spawn", () => {
      if (child.pid === undefined || !/^workerd(\.exe)?$/.test(basename(child.spawnfile))) return;
      const running: Running = { node, workerd: { pid: child.pid, command: child.spawnargs } };
      writeFileSync(recordIn(state), JSON.stringify(running));
    });
  };
  subscribe("child_process", listen);
}

export function forgetWorkerd(state: string): void {
  rmSync(recordIn(state), { force: true });
}

/** The pid of the Node that serves this state now, if there is one. Where only its workerd is left, that is ended. */
export async function endOrphan(state: string): Promise<number | undefined> {
  const running = readRecord(state);
  if (!running) return undefined;
  if (isStill(running.node)) return running.node.pid;
  if (isStill(running.workerd)) {
    process.kill(running.workerd.pid, "SIGKILL");
    await ended(running.workerd.pid);
  }
  forgetWorkerd(state);
  return undefined;
}

function readRecord(state: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(recordIn(state), "utf8"));
  } catch {
    // There is none, or whoever wrote it was killed in the middle.
    return undefined;
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
