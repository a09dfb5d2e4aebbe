// `npm start`, as a user starts it: by npm, in a clone, with the settings of its .dev.vars.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { hear } from "../../support/canary.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { testSettings } from "../../support/settings.ts";
import { copyCheckout } from "./checkout.ts";

const startMs = 60_000;
const endMs = 5_000;

export interface Pids {
  readonly node: number;
  readonly workerd: number;
}

export interface NpmStartOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** What a test changes in the clone before the first start. */
  readonly prepare?: (folder: string) => void;
}

export class NpmStart {
  readonly port: number;
  /** All that it printed. */
  readonly log: string[] = [];
  readonly folder: string;
  readonly #args: readonly string[];
  readonly #remove: () => void;
  #npm: ChildProcess | undefined;
  #exit: Promise<number | null> = Promise.resolve(null);

  static async start({ settings = {}, args = [], prepare }: NpmStartOptions = {}): Promise<NpmStart> {
    const server = new NpmStart(await freePort(), args);
    server.set(settings);
    prepare?.(server.folder);
    await server.restart();
    return server;
  }

  private constructor(port: number, args: readonly string[]) {
    const clone = copyCheckout();
    this.port = port;
    this.folder = clone.path;
    this.#args = args;
    this.#remove = clone.remove;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Of Node and of workerd, as they are noted beside the state. */
  get pids(): Pids {
    const { node, workerd } = JSON.parse(readFileSync(join(this.folder, ".state/processes.json"), "utf8"));
    return { node: node.pid, workerd: workerd.pid };
  }

  set(settings: Readonly<Record<string, string>>): void {
    const lines = Object.entries({ ...testSettings, ...settings }).map(([name, value]) => `${name}=${value}`);
    writeFileSync(join(this.folder, ".dev.vars"), `${lines.join("\n")}\n`);
  }

  async restart(): Promise<void> {
    const before = this.log.length;
    const npm = spawn("npm", ["start", "--silent", "--", "--port", `${this.port}`, ...this.#args], {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#npm = npm;
    this.#exit = new Promise((resolve) => npm.once("exit", resolve));
    for (const output of [npm.stdout, npm.stderr]) {
      createInterface({ input: output }).on("line", (line) => {
        this.log.push(line);
        hear("the log", line);
      });
    }
    const serves = eventually("its first screen", startMs, async () => {
      if (npm.exitCode !== null) return "ended";
      // An orphan may answer still.
      return this.log.slice(before).some((line) => line.includes(this.url)) && "serves";
    });
    if ((await serves) === "ended") throw new Error(`npm start ended:\n${this.log.join("\n")}`);
  }

  /** Node alone, in the middle of whatever it does. */
  async kill9(): Promise<void> {
    process.kill(this.pids.node, "SIGKILL");
    await this.#exit;
  }

  /** As Ctrl-C does, which reaches workerd too: at worst first. Resolves once nothing of it is left. */
  async interrupt(): Promise<void> {
    const { node, workerd } = this.pids;
    process.kill(workerd, "SIGINT");
    await eventually("the end of workerd", endMs, async () => !isAlive(workerd));
    process.kill(node, "SIGINT");
    await this.#exit;
    await eventually("the end of its processes", endMs, async () => !isAlive(node) && !isAlive(workerd));
  }

  async stop(): Promise<void> {
    if (this.#npm?.exitCode === null && existsSync(join(this.folder, ".state/processes.json"))) await this.interrupt();
    this.#remove();
  }

  /** Peak and present memory of workerd, in bytes. */
  memory(): { peak: number; now: number } {
    return memoryOf(this.pids.workerd);
  }

  forgetPeak(): void {
    writeFileSync(`/proc/${this.pids.workerd}/clear_refs`, "5");
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export function memoryOf(pid: number): { peak: number; now: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024;
  return { peak: bytes("VmHWM"), now: bytes("VmRSS") };
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
