// What the embedded platform itself has of its models' jobs, looked at again and again: it remembers what expires there.
import { findModel } from "../../../src/models/index.ts";
import type { Server } from "../../support/serve.ts";
import { eventually, inParallel } from "../../support/serve-eventually.ts";

interface Listed {
  readonly id: string;
  readonly status: string;
}

const countPauseMs = 50;
/** The contract lets a listing be read ten times in ten seconds. */
const listPauseMs = 1_100;
const mostListed = 1000;
const askedAtOnce = 4;

export class UpstreamWatch {
  /** The true cost of each job that ended; undefined while it goes on. */
  readonly costs = new Map<string, number | undefined>();
  /** How many of a model's jobs were open at once. */
  readonly mostOpen = new Map<string, number>();
  readonly #server: Server;
  readonly #models: readonly string[];
  readonly #loops: Promise<unknown>;
  #watching = true;
  #listings = 0;

  constructor(server: Server, models: readonly string[]) {
    this.#server = server;
    this.#models = models;
    const counting = models.map((model) => this.#again(countPauseMs, () => this.#count(model)));
    this.#loops = Promise.all([...counting, this.#again(listPauseMs, () => this.#list())]);
  }

  /** Every job that the platform has by now is at its end, and its cost is known. */
  async sawAllEnd(withinMs: number): Promise<void> {
    // The listing under way may have begun too early.
    const enough = this.#listings + 2;
    await eventually("the end of all upstream jobs", withinMs, async () => {
      return this.#listings >= enough && [...this.costs.values()].every((cost) => cost !== undefined);
    });
  }

  async stop(): Promise<void> {
    this.#watching = false;
    await this.#loops;
  }

  async #again(pauseMs: number, look: () => Promise<void>): Promise<void> {
    while (this.#watching) {
      // While the process is dead there is nothing to see.
      await look().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #count(model: string): Promise<void> {
    const { jobs } = await this.#ask<{ jobs: { inQueue: number; inProgress: number } }>(`${model}/health`);
    this.mostOpen.set(model, Math.max(jobs.inQueue + jobs.inProgress, this.mostOpen.get(model) ?? 0));
  }

  async #list(): Promise<void> {
    await Promise.all(this.#models.map((model) => this.#listOf(model)));
    this.#listings += 1;
  }

  async #listOf(model: string): Promise<void> {
    const { requests } = await this.#ask<{ requests: Listed[] }>(`${model}/requests?limit=${mostListed}`);
    const unknown = requests.filter(({ id }) => this.costs.get(id) === undefined);
    for (const { id } of unknown) this.costs.set(id, undefined);
    const ended = unknown.filter(({ status }) => !status.startsWith("IN_"));
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
