// One `workerd serve` on a free port of this machine: started, killed and started again, watched while it runs.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { root } from "../../src/cli/wrangler.ts";
import { canaryListens, hear } from "./canary.ts";
import { memoryDisk } from "./memory-disk.ts";

const startMs = 20_000;
const keptLogLines = 200;
/** A write beyond the limit on files fails then, as it does on a full disk; else it would end the process. */
const fillable = `trap "" XFSZ; exec "$0" "$@"`;

export class WorkerdProcess {
  readonly folder: string;
  /** What the process said last, for whoever must understand a failure. */
  readonly log: string[] = [];
  /** Who listens to its log. */
  onLine: (line: string) => void = (line) => hear("the log", line);
  #process: ChildProcess | undefined;
  #port = 0;
  readonly #toldOf: "pipe" | "ignore";

  /** In memory, the disk is no part of what is measured; nor is whoever reads the lines of the exchanges. */
  constructor(inMemory: boolean) {
    this.#toldOf = inMemory && !canaryListens() ? "ignore" : "pipe";
    this.folder = mkdtempSync(join((inMemory && memoryDisk()) || tmpdir(), "sluice-"));
    mkdirSync(this.disk);
  }

  get disk(): string {
    return join(this.folder, "disk");
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get pid(): number {
    if (this.#process?.pid === undefined) throw new Error("the server is not running");
    return this.#process.pid;
  }

  get #config(): string {
    return join(this.folder, "workerd.capnp");
  }

  configure(config: string): void {
    writeFileSync(this.#config, config);
  }

  /** On the same disk and, from the second time on, the same port. */
  async restart(): Promise<void> {
    const args = ["serve", "--control-fd=3", "--socket-addr", `http=127.0.0.1:${this.#port}`, this.#config];
    const stdio = ["ignore", this.#toldOf, "pipe", "pipe"] as const;
    const workerd = join(root, "node_modules/.bin/workerd");
    const child = spawn("sh", ["-c", fillable, workerd, ...args], { stdio: [...stdio] });
    this.#process = child;
    for (const output of [child.stdout, child.stderr]) this.#keepLog(output);
    this.#port = await this.#listening(child);
  }

  #keepLog(output: Readable | null): void {
    if (!output) return;
    createInterface({ input: output }).on("line", (line) => {
      this.log.push(line);
      this.onLine(line);
      if (this.log.length > keptLogLines) this.log.shift();
    });
  }

  #listening(child: ChildProcess): Promise<number> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`workerd ${why}:\n${this.log.join("\n")}`));
      const timer = setTimeout(() => fail("did not listen in time"), startMs);
      child.once("exit", (code) => {
        clearTimeout(timer);
        fail(`ended with ${code}`);
      });
      createInterface({ input: child.stdio[3] as Readable }).on("line", (line) => {
        const { event, port } = JSON.parse(line) as { event: string; port?: number };
        if (event !== "listen" || port === undefined) return;
        clearTimeout(timer);
        resolve(port);
      });
    });
  }

  /** In the middle of whatever it does. */
  kill9(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Ends the process and removes what it stored. */
  async stop(): Promise<void> {
    await this.#end("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #end(signal: "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  /** Every write to a file fails, as on a full disk, until there is room again. Of a process that dies, the next has room. */
  fillDisk(isFull: boolean): void {
    execFileSync("prlimit", ["--pid", String(this.pid), `--fsize=${isFull ? 0 : "unlimited"}:unlimited`]);
  }

  /** Peak and present memory of the process, in bytes. */
  memory(): { peak: number; now: number } {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    const kilobytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024;
    return { peak: kilobytes("VmHWM"), now: kilobytes("VmRSS") };
  }

  cpuMs(): number {
    return cpuMsOf(this.pid);
  }

  /** Lets the peak be counted anew. */
  forgetPeak(): void {
    writeFileSync(`/proc/${this.pid}/clear_refs`, "5");
  }
}

/** CPU that a process's threads have used, as exact as the scheduler counts it. */
export function cpuMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const spent = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
  return spent.reduce((sum, nanoseconds) => sum + Number(nanoseconds), 0) / 1e6;
}
