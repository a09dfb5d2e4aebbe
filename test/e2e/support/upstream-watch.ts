// What the embedded platform itself has of its models' jobs, looked at again and again: it remembers what expires there.
import { findModel } from "../../../src/models/index.ts";
import type { Server } from "../../support/serve.ts";
import { eventually, inParallel } from "../../support/serve-eventually.ts";

interface Listed {
  readonly id: string;
  readonly status: string;
}

const pauseMs = 100;
const askedAtOnce = 4;
/** One page, so that what is open in it was open in one moment. */
const mostListed = 1000;

export class UpstreamWatch {
  /** The true cost of each job that ended; undefined while it goes on. */
  readonly costs = new Map<string, number | undefined>();
  /** How many of a model's jobs were open at once. */
  readonly mostOpen = new Map<string, number>();
  readonly #server: Server;
  readonly #models: readonly string[];
  #watching = true;
  readonly #loop: Promise<void>;

  constructor(server: Server, models: readonly string[]) {
    this.#server = server;
    this.#models = models;
    this.#loop = this.#watch();
  }

  /** Every job that the platform has now is at its end, and its cost is known. */
  async sawAllEnd(withinMs: number): Promise<void> {
    await eventually("the end of all upstream jobs", withinMs, async () => {
      await Promise.all(this.#models.map((model) => this.#look(model)));
      return [...this.costs.values()].every((cost) => cost !== undefined);
    });
  }

  async stop(): Promise<void> {
    this.#watching = false;
    await this.#loop;
  }

  async #watch(): Promise<void> {
    while (this.#watching) {
      // While the process is dead there is nothing to see.
      await Promise.all(this.#models.map((model) => this.#look(model).catch(() => {})));
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #look(model: string): Promise<void> {
    const { requests } = await this.#ask<{ requests: Listed[] }>(`${model}/requests?limit=${mostListed}`);
    const open = requests.filter(({ status }) => isOpen(status)).length;
    this.mostOpen.set(model, Math.max(open, this.mostOpen.get(model) ?? 0));
    const unknown = requests.filter(({ id }) => this.costs.get(id) === undefined);
    for (const { id } of unknown) this.costs.set(id, undefined);
    const ended = unknown.filter(({ status }) => !isOpen(status));
    await inParallel(ended, askedAtOnce, async (job) => this.costs.set(job.id, await this.#costOf(model, job)));
  }

  async #costOf(model: string, { id, status }: Listed): Promise<number | undefined> {
    if (status !== "COMPLETED") return 0;
    const { output } = await this.#ask<{ output: unknown }>(`${model}/status/${id}`);
    return findModel(model)?.costOf(output, {});
  }

  async #ask<T>(path: string): Promise<T> {
    const response = await this.#server.platform(path);
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    return (await response.json()) as T;
  }
}

const isOpen = (status: string) => status.startsWith("IN_");
