// A model service that says what a test tells it to say: by default an honest one, whose jobs are as the test sets them.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally } from "../../support/serve-locally.ts";

export const upstreamKey = "key-of-the-scripted-upstream-0123456789";

/** What was asked of it. */
export interface Asked {
  readonly method: string;
  readonly model: string;
  /** The operation, or the whole of a path under `openai/`. */
  readonly operation: string;
  readonly job: string | undefined;
  readonly text: string;
}

/** A job as it is now: whatever stands here is in its status. */
export interface UpstreamJob {
  readonly id: string;
  readonly webhook: string | undefined;
  state: Readonly<Record<string, unknown>>;
  /** Handed out by the next call of `stream`, once. */
  pieces: unknown[];
}

/** Answers in its place where it returns true. */
export type Script = (asked: Asked, response: ServerResponse) => boolean | Promise<boolean>;

export class ScriptedUpstream {
  readonly asked: Asked[] = [];
  readonly jobs: UpstreamJob[] = [];
  /** Before the honest answer, by the model's name. */
  readonly scripts = new Map<string, Script>();
  readonly #server = createServer((request, response) => {
    this.#serve(request, response).catch(() => response.destroy());
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

  /** What was submitted, which is what costs money. */
  submitted(model: string): Asked[] {
    return this.asked.filter((asked) => asked.model === model && asked.method === "POST" && isSubmit(asked.operation));
  }

  /** A handle begins with the upstream's id. */
  jobOf(handle: string): UpstreamJob {
    const job = this.jobs.find(({ id }) => handle.startsWith(`${id}.`));
    if (!job) throw new Error(`no job was submitted that is ${handle} to its owner`);
    return job;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, , model = "", operation = "", ...rest] = new URL(request.url ?? "/", this.url).pathname.split("/");
    const text = await read(request);
    if (request.headers.authorization !== `Bearer ${upstreamKey}`) return void send(response, 401, { error: "no" });
    const asked: Asked = {
      method: request.method ?? "",
      model,
      operation: operation === "openai" ? [operation, ...rest].join("/") : operation,
      job: rest[0],
      text,
    };
    this.asked.push(asked);
    if (await this.scripts.get(model)?.(asked, response)) return;
    this.#answer(asked, response);
  }

  #answer(asked: Asked, response: ServerResponse): void {
    if (asked.operation === "run" || asked.operation === "runsync") this.#submit(asked, response);
    else this.#follow(asked, response);
  }

  #submit({ text }: Asked, response: ServerResponse): void {
    const { webhook } = JSON.parse(text) as { webhook?: string };
    const job = { id: `job-${this.jobs.length + 1}`, webhook, state: { status: "IN_QUEUE" }, pieces: [] };
    this.jobs.push(job);
    send(response, 200, { id: job.id, ...job.state });
  }

  #follow({ operation, job: id }: Asked, response: ServerResponse): void {
    const job = this.jobs.find((one) => one.id === id);
    if (!job) return void send(response, 404, { error: "job not found" });
    if (operation === "retry") job.state = { status: "IN_QUEUE" };
    if (operation === "cancel") job.state = { ...job.state, status: "CANCELLED" };
    const stream = operation === "stream" && job.pieces.splice(0).map((output) => ({ output }));
    send(response, 200, stream ? { status: job.state["status"], stream } : { id: job.id, ...job.state });
  }
}

const isSubmit = (operation: string) => /^(run|runsync|retry|openai\/.*)$/.test(operation);

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

async function read(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}
