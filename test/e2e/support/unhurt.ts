// What must hold of `npm start` after everything that was done to it.
import { expect } from "vitest";
import { memoryOf, type NpmStart, type Pids } from "./npm-start.ts";

const restMs = 30_000;
const mayGrow = 1.2;

export class Unhurt {
  readonly #server: NpmStart;
  readonly #pids: Pids;
  #idleBytes: number | undefined;

  constructor(server: NpmStart) {
    this.#server = server;
    this.#pids = server.pids;
  }

  /** Half a minute after the first load: what was compiled and reserved for it stays, as in every runtime. */
  async settle(): Promise<void> {
    await rest();
    this.#idleBytes = bytesOf(this.#pids);
  }

  /** The same two processes serve, and half a minute later they hold what they held when they were idle before. */
  async expect(): Promise<void> {
    expect(this.#server.pids).toEqual(this.#pids);
    expect((await fetch(`${this.#server.url}/healthz`)).status).toBe(200);
    if (this.#idleBytes === undefined) return;
    await rest();
    expect(bytesOf(this.#pids) / this.#idleBytes, "memory, by what it was").toBeLessThan(mayGrow);
  }
}

const rest = () => new Promise((resolve) => setTimeout(resolve, restMs));

function bytesOf({ node, workerd }: Pids): number {
  return memoryOf(node).now + memoryOf(workerd).now;
}
