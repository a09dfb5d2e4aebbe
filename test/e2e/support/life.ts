// A piece of the gateway's life: what users and the operator leave behind, and how it goes on, each with what must be true of it.
import { createServer } from "node:http";
import { expect } from "vitest";
import { workerEnvironment } from "../../../src/cli/worker-env.ts";
import type { Server } from "../../support/serve.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { listenLocally } from "../../support/serve-locally.ts";
import { ScriptedWorker } from "../../support/serve-worker.ts";
import { testSettings } from "../../support/settings.ts";

/** Each an endpoint of one job, which waits until a worker of ours comes. */
export const endpoints = ["kept", "cancelled", "failing"] as const;
type Endpoint = (typeof endpoints)[number];
const image = "black-forest-labs-flux-1-schnell";
const text = "granite-4-0-h-small";
const chat = "gpt-oss-120b";
const switchedOff = "black-forest-labs-flux-1-dev";
const reservedUsd = 0.5;
const costUsd = { kept: 0.2, failing: 0.1 };
const places = { requests: 12, granted: 2 };
const patienceMs = 15_000;

/** Small ones: the sample model draws every pixel. */
const size = { width: 256, height: 256 };
const picture = { input: { prompt: "a lighthouse at dusk", ...size } };
/** What names its seed may be answered from the cache. */
const reusable = { input: { ...picture.input, seed: 7 } };
const keyed = { "Idempotency-Key": "the-picture" };

interface Answer {
  readonly status: number;
  readonly cache: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

export class Life {
  readonly #server: Server;
  readonly #notices: unknown[] = [];
  readonly #receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => {
      body += data;
    });
    request.on("end", () => {
      this.#notices.push(JSON.parse(body));
      response.end();
    });
  });
  #ada = "";
  #bob = "";
  /** Of the jobs by their endpoints, and of the picture. */
  readonly #handles = new Map<string, string>();
  #pictureUrl = "";
  #before: Books | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  async close(): Promise<void> {
    this.#receiver.closeAllConnections();
    await new Promise((resolve) => this.#receiver.close(resolve));
  }

  /** Ends with the books as they must be found. */
  async leaveBehind(): Promise<void> {
    const webhook = `${await listenLocally(this.#receiver)}/told`;
    await this.#operate();
    this.#ada = await this.#mint("ada");
    this.#bob = await this.#mint("bob");
    await this.#admin("POST", "/users/bob/revoke", {});

    const made = await this.#ask("POST", `/v2/${image}/runsync`, picture, keyed);
    expect(made).toMatchObject({ status: 200, body: { status: "COMPLETED" } });
    this.#handles.set("picture", String(made.body["id"]));
    expect(await this.#ask("POST", `/v2/${image}/runsync`, reusable)).toMatchObject({ status: 200 });
    this.#pictureUrl = (made.body["output"] as { image_url: string }).image_url;
    const messages = [{ role: "user", content: "Say something." }];
    const told = { input: { messages, sampling_params: { max_tokens: 16 } } };
    expect(await this.#ask("POST", `/v2/${text}/runsync`, told)).toMatchObject({ status: 200 });
    const path = `/v2/${chat}/openai/v1/chat/completions`;
    expect(await this.#ask("POST", path, { model: chat, messages })).toMatchObject({ status: 200 });
    await this.#submit("kept", webhook);
    await this.#submit("cancelled");
    await this.#submit("failing");
    await this.#work("failing", { error: "out of memory" });
    await this.#ends("failing", "FAILED");
    this.#before = await eventually("books with five ended jobs", patienceMs, async () => {
      const books = await this.#books();
      return books.jobs.filter(({ costUsd }) => costUsd !== null).length === 5 && books;
    });
  }

  /** Whatever serves it now: what was left is found, and goes on. */
  async goOn(): Promise<void> {
    expect(await this.#books()).toEqual(this.#left);
    await this.#findsWhatWasMade();
    await this.#findsWhatTheOperatorSaid();
    await this.#endsWhatWasOpen();
    await this.#countsOn();
  }

  get #left(): Books {
    if (!this.#before) throw new Error("nothing was left behind");
    return this.#before;
  }

  async #operate(): Promise<void> {
    const rules = [
      { unit: "requests", limit: places.requests, per: "day" },
      { unit: "jobs", limit: 5 },
      { unit: "usd", limit: 5, per: "month" },
    ];
    await this.#admin("PUT", "/plans/kept", { rules });
    await this.#admin("PATCH", "/users/ada", { plan: "kept" });
    await this.#admin("POST", "/users/ada/grant", { unit: "requests", amount: places.granted });
    for (const name of endpoints)
      await this.#admin("PUT", `/models/${name}`, { passthrough: true, maxUsd: reservedUsd });
    await this.#admin("PUT", `/models/${switchedOff}`, { enabled: false });
    await this.#admin("PUT", "/budget", { dayUsd: 50, monthUsd: 800 });
  }

  async #findsWhatWasMade(): Promise<void> {
    const again = await this.#ask("POST", `/v2/${image}/runsync`, picture, keyed);
    expect(again).toMatchObject({ status: 200, body: { id: this.#handles.get("picture") } });
    const other = { input: { prompt: "a lighthouse at dawn", ...size } };
    const refused = await this.#ask("POST", `/v2/${image}/runsync`, other, keyed);
    expect(refused).toMatchObject({ status: 409, body: { code: "IDEMPOTENCY_MISMATCH" } });
    expect((await this.#ask("POST", `/v2/${image}/runsync`, reusable)).cache).toBe("HIT");
    expect(await this.#status("picture", image)).toBe("COMPLETED");
    expect(await this.#status("kept")).toBe("IN_QUEUE");
    expect(await this.#status("failing")).toBe("FAILED");
    const response = await fetch(new URL(new URL(this.#pictureUrl).pathname, this.#server.url));
    expect([response.status, response.headers.get("Content-Type")]).toEqual([200, expect.stringMatching(/^image\//)]);
    await response.arrayBuffer();
  }

  async #findsWhatTheOperatorSaid(): Promise<void> {
    const revoked = await this.#ask("GET", "/usage", undefined, { Authorization: `Bearer ${this.#bob}` });
    expect(revoked).toMatchObject({ status: 401, body: { code: "TOKEN_REVOKED" } });
    const off = await this.#ask("POST", `/v2/${switchedOff}/run`, picture);
    expect(off).toMatchObject({ status: 403, body: { code: "MODEL_DISABLED" } });
  }

  async #endsWhatWasOpen(): Promise<void> {
    const cancelled = await this.#ask("POST", `/v2/cancelled/cancel/${this.#handles.get("cancelled")}`);
    expect(cancelled).toMatchObject({ status: 200, body: { status: "CANCELLED" } });
    await this.#work("kept", { output: { cost: costUsd.kept } });
    await this.#ends("kept", "COMPLETED");
    const retried = await this.#ask("POST", `/v2/failing/retry/${this.#handles.get("failing")}`);
    expect(retried.status, JSON.stringify(retried.body)).toBe(200);
    this.#handles.set("failing", String(retried.body["id"]));
    await this.#work("failing", { output: { cost: costUsd.failing } });
    await this.#ends("failing", "COMPLETED");
    const dueUsd = this.#left.spentUsd + costUsd.kept + costUsd.failing;
    await eventually(`${dueUsd} USD in the books, and none reserved`, patienceMs, async () => {
      const books = await this.#books();
      return Math.abs(books.spentUsd - dueUsd) < 1e-9 && books.reservedUsd === 0;
    });
    await eventually("the webhook", patienceMs, async () => this.#notices.length > 0);
    expect(this.#notices[0]).toMatchObject({ id: this.#handles.get("kept"), status: "COMPLETED" });
  }

  /** To the last place, and not one further. */
  async #countsOn(): Promise<void> {
    const { requests } = await this.#books();
    expect(requests).toBeGreaterThan(this.#left.requests);
    const left = places.requests + places.granted - requests;
    const statuses: number[] = [];
    for (let n = 0; n <= left; n++) {
      const one = { input: { prompt: `one more, ${n}`, ...size } };
      statuses.push((await this.#ask("POST", `/v2/${image}/runsync`, one)).status);
    }
    expect(statuses).toEqual([...Array<number>(left).fill(200), 429]);
  }

  async #submit(name: Endpoint, webhook?: string): Promise<void> {
    const body = webhook === undefined ? { input: {} } : { input: {}, webhook };
    const { status, body: job } = await this.#ask("POST", `/v2/${name}/run`, body);
    expect(status, JSON.stringify(job)).toBe(200);
    this.#handles.set(name, String(job["id"]));
  }

  async #work(name: Endpoint, result: object): Promise<void> {
    const attached = { endpoint: name, url: this.#server.url, key: testSettings.PLATFORM_API_KEY, worker: "w1" };
    const worker = new ScriptedWorker(workerEnvironment(attached), () => result);
    await eventually(`the job of ${name} at its worker`, patienceMs, async () => {
      const job = await worker.take();
      return job !== undefined && (await worker.done(job.id, result)) === 200;
    });
  }

  async #ends(name: Endpoint, as: string): Promise<void> {
    await eventually(`${as} of ${name}`, patienceMs, async () => (await this.#status(name)) === as);
  }

  async #status(name: string, model = name): Promise<unknown> {
    return (await this.#ask("GET", `/v2/${model}/status/${this.#handles.get(name)}`)).body["status"];
  }

  async #books(): Promise<Books> {
    const { limits, jobs } = (await this.#ask("GET", "/usage")).body as unknown as Usage;
    const { images } = (await this.#ask("GET", "/images")).body as unknown as { images: { key: string }[] };
    const { plan, rules, grants, spent } = (await this.#admin("GET", "/users/ada")) as unknown as User;
    const { dayUsd, monthUsd } = await this.#admin("GET", "/budget");
    return {
      requests: limits.find(({ unit }) => unit === "requests")?.used ?? Number.NaN,
      spentUsd: spent.usd,
      assumedUsd: spent.assumedUsd,
      reservedUsd: spent.reservedUsd,
      pictures: images.map(({ key }) => key),
      jobs,
      operator: { plan, rules, grants, dayUsd, monthUsd },
    };
  }

  async #ask(
    method: string,
    path: string,
    body?: object,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const headers = { Authorization: `Bearer ${this.#ada}`, ...more };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(this.#server.url + path, { method, headers, ...sent });
    const { status, headers: received } = response;
    return { status, cache: received.get("X-Cache"), body: (await response.json()) as Answer["body"] };
  }

  async #admin(method: string, path: string, body?: object): Promise<Answer["body"]> {
    const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
    const answer = await this.#ask(method, `/admin${path}`, body, headers);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body;
  }

  async #mint(user: string): Promise<string> {
    const { body } = await this.#ask(
      "POST",
      "/tokens",
      { user },
      { Authorization: `Bearer ${testSettings.APP_SECRET}` },
    );
    return String(body["token"]);
  }
}

interface Usage {
  readonly limits: readonly { unit: string; used: number }[];
  readonly jobs: readonly { model: string; status: string; reservedUsd: number; costUsd: number | null }[];
}

interface User {
  readonly plan: unknown;
  readonly rules: unknown;
  readonly grants: unknown;
  readonly spent: { usd: number; assumedUsd: number; reservedUsd: number };
}

/** What must be found as it was left. */
interface Books {
  readonly requests: number;
  readonly spentUsd: number;
  readonly reservedUsd: number;
  readonly assumedUsd: number;
  readonly pictures: readonly string[];
  readonly jobs: Usage["jobs"];
  readonly operator: unknown;
}
