// A model service that counts the jobs it is handed. Each answer takes a little longer than the one before, so that a bar can be seen to grow.
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { listenLocally } from "../support/serve-locally.ts";

const laterMs = 8;

export class CountingUpstream {
  jobs = 0;
  readonly #server = createServer(async (request, response) => {
    request.resume();
    this.jobs += 1;
    const id = `job-${this.jobs}`;
    await setTimeout(this.jobs * laterMs);
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify({ id, status: "IN_QUEUE" }));
  });
  #url = "";

  async listen(): Promise<this> {
    this.#url = await listenLocally(this.#server);
    return this;
  }

  get url(): string {
    return this.#url;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
