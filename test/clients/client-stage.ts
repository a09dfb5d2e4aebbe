// What the client is tried against: `npm start`, users whom nobody has seen before, a worker that tells stories as it is
// asked to, and a network that breaks.
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { createSluice, type Options, type Sluice } from "../../src/client/index.ts";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { ScriptedWorker, type TakenJob } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";
import { BreakingProxy } from "./breaking-proxy.ts";
import type { World } from "./client-scenarios.ts";

export const flux = "black-forest-labs-flux-1-schnell";
export const text = "gpt-oss-120b";

/** One job at a time: the next one is proof that the place of the one before is free. */
export const oneAtATime = { rules: [{ unit: "jobs", limit: 1 }] };

/** Endpoints that the operator opened: a worker of ours is at the first, and nobody ever comes to the other. */
const [storyteller, waitingRoom] = ["storyteller", "waiting-room"];
const atOnce = 6;
const beatMs = 500;

export class Stage {
  readonly gateway: NpmStart;
  readonly #workers: ScriptedWorker[] = [];
  #proxy: BreakingProxy | undefined;
  #users = 0;

  static async open(): Promise<Stage> {
    const ENDPOINTS = `${storyteller},${waitingRoom}`;
    const settings = { SAMPLE_DELAY_MS: "200", SESSION_PLAN: "developer", ENDPOINTS };
    const stage = new Stage(await NpmStart.start({ settings }));
    await stage.#set();
    return stage;
  }

  private constructor(gateway: NpmStart) {
    this.gateway = gateway;
  }

  async #set(): Promise<void> {
    const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
    const body = JSON.stringify({ passthrough: true, maxUsd: 0.5 });
    for (const model of [storyteller, waitingRoom]) {
      const opened = await fetch(`${this.url}/admin/models/${model}`, { method: "PUT", headers, body });
      if (!opened.ok) throw new Error(await opened.text());
    }
    this.#proxy = await BreakingProxy.open(this.url);
    for (let n = 0; n < atOnce; n++) {
      const attached = { endpoint: storyteller, url: this.url, key: testSettings.PLATFORM_API_KEY, worker: `w${n}` };
      const worker = new ScriptedWorker(workerEnvironment(attached), (job, worker) => this.#tell(job, worker));
      this.#workers.push(worker.start());
    }
  }

  async close(): Promise<void> {
    this.#proxy?.close();
    for (const worker of this.#workers) worker.leave().catch(() => {});
    await this.gateway.stop();
  }

  /** `beats` of half a second, chunks for so many `streams` until each is cut, `percents` of progress. */
  async #tell({ id, input }: TakenJob, worker: ScriptedWorker): Promise<unknown> {
    const { beats = 0, streams = 0, percents = 0 } = input as Readonly<Record<string, number>>;
    const chunks: number[] = [];
    /** False where nobody listens any more. */
    const emit = async () => {
      chunks.push(chunks.length + 1);
      return (await worker.emit(id, chunks.length)) === 200;
    };
    for (let beat = 0; beat < beats && (await emit()); beat++) {
      await new Promise((resolve) => setTimeout(resolve, beatMs));
    }
    for (let stream = 1; stream <= streams; stream++) {
      await this.#proxy?.streams(stream);
      do {
        await emit();
        await new Promise((resolve) => setTimeout(resolve, beatMs / 5));
      } while (stream < streams && this.#proxy?.cuts !== stream);
    }
    for (let percent = 1; percent <= percents; percent++) {
      if ((await worker.progress(id, { percent })) !== 200) break;
      await new Promise((resolve) => setTimeout(resolve, beatMs));
    }
    return { output: { chunks, cost: 0.1 } };
  }

  get url(): string {
    return this.gateway.url;
  }

  newUser(): string {
    return `user-${++this.#users}`;
  }

  async mint(user: string, terms: object = {}): Promise<{ token: string; expiresAt: string }> {
    const response = await fetch(`${this.url}/tokens`, {
      method: "POST",
      headers: { Authorization: `Bearer ${testSettings.APP_SECRET}` },
      body: JSON.stringify({ user, plan: "unlimited", ...terms }),
    });
    return (await response.json()) as { token: string; expiresAt: string };
  }

  /** Of a new user. */
  client({ terms = {}, ...options }: { readonly terms?: object } & Options = {}): Sluice {
    const user = this.newUser();
    return createSluice({ url: this.url, token: () => this.mint(user, terms), ...options });
  }

  /** Of a new user. */
  world(): World {
    const user = this.newUser();
    const brokenUrl = this.#proxy?.url ?? "";
    return { createSluice, url: this.url, brokenUrl, mint: (terms) => this.mint(user, terms) };
  }
}
