// A peer on Node: one process on a free port, watched as workerd is.
import { type ChildProcess, spawn } from "node:child_process";
import { eventually } from "../../support/serve-eventually.ts";
import { freePort } from "../../support/serve-locally.ts";
import { cpuMsOf } from "../../support/serve-process.ts";

const startsWithinMs = 20_000;

export class PeerProcess {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  /** On the Node that the bench runs on. */
  static async start(folder: string, args: (port: number) => readonly string[]): Promise<PeerProcess> {
    const port = await freePort();
    const env = { ...process.env, NODE_ENV: "production" };
    const child = spawn(process.execPath, args(port), { cwd: folder, env, stdio: "ignore" });
    const peer = new PeerProcess(port, child);
    await eventually("the peer's first answer", startsWithinMs, async () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
      await (await fetch(peer.url)).arrayBuffer();
      return true;
    });
    return peer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  cpuMs(): number {
    return cpuMsOf(this.#child.pid ?? 0);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }
}
