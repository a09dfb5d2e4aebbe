// What must hold of `npm start` after everything that was done to it.
import { expect } from "vitest";
import { memoryOf, type NpmStart, type Pids } from "./npm-start.ts";

const restMs = 30_000;
const mayGrow = 1.2;

export class Unhurt {
  readonly #server: NpmStart;
  readonly #pids: Pids;
  #idle: Memory | undefined;

  constructor(server: NpmStart) {
    this.#server = server;
    this.#pids = server.pids;
  }

  /** Half a minute after a first load of the same kind: what was compiled and reserved for it stays, as in every runtime. */
  async settle(): Promise<void> {
    await rest();
    this.#idle = memoryOfBoth(this.#pids);
  }

  /** The same two processes serve. */
  async serves(): Promise<void> {
    expect(this.#server.pids).toEqual(this.#pids);
    const response = await fetch(`${this.#server.url}/healthz`);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ status: "ok" });
  }

  /** They serve, and half a minute later they hold what they held when they were idle before. */
  async expect(): Promise<void> {
    await this.serves();
    await rest();
    const idle = this.#idle;
    if (!idle) throw new Error("nobody knows what it held when it was idle");
    const now = memoryOfBoth(this.#pids);
    const grew = (now.node + now.workerd) / (idle.node + idle.workerd);
    expect(grew, `from ${JSON.stringify(idle)} to ${JSON.stringify(now)} MB`).toBeLessThan(mayGrow);
  }
}

const rest = () => new Promise((resolve) => setTimeout(resolve, restMs));

interface Memory {
  readonly node: number;
  readonly workerd: number;
}

function memoryOfBoth({ node, workerd }: Pids): Memory {
  const megabytes = (pid: number) => Math.round(memoryOf(pid).now / 1e6);
  return { node: megabytes(node), workerd: megabytes(workerd) };
}
