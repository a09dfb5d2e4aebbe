// What must hold of `npm start` after everything that was done to it.
import { expect } from "vitest";
import { memoryOf, type NpmStart, type Pids } from "../e2e/support/npm-start.ts";

const restMs = 30_000;
const grownBy = 1.2;

export class Unhurt {
  readonly #server: NpmStart;
  readonly #pids: Pids;
  readonly #idleBytes: number;

  constructor(server: NpmStart) {
    this.#server = server;
    this.#pids = server.pids;
    this.#idleBytes = bytesOf(server.pids);
  }

  /** The same two processes serve, and half a minute later they hold what they held when they were idle. */
  async expect(): Promise<void> {
    expect(this.#server.pids).toEqual(this.#pids);
    expect((await fetch(`${this.#server.url}/healthz`)).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, restMs));
    console.log("memory", this.#idleBytes / 1e6, bytesOf(this.#pids) / 1e6);
    expect(bytesOf(this.#pids)).toBeLessThan(this.#idleBytes * grownBy);
  }
}

function bytesOf({ node, workerd }: Pids): number {
  return memoryOf(node).now + memoryOf(workerd).now;
}
