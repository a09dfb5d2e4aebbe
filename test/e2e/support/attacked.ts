// A gateway before a scripted upstream, with the eyes of those whose money it is: the user's, the neighbours', the operator's.
import { setTimeout } from "node:timers/promises";
import { expect } from "vitest";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import { Server } from "../../support/serve.ts";
import { eventually } from "../../support/serve-eventually.ts";
import { testSettings } from "../../support/settings.ts";
import { ScriptedUpstream, type UpstreamJob, upstreamKey } from "./scripted-upstream.ts";

/** An endpoint that the operator opened at a price; its jobs say themselves what they cost. */
export const opened = "opened";
export const openedUsd = 1;
export const image = "black-forest-labs-flux-1-schnell";
/** Ten dollars a million tokens, of the input and of the output. */
export const text = "granite-4-0-h-small";
export const usdAToken = 10 / 1e6;

/** Alarms, and what is told in `waitUntil`. */
export const settlesWithinMs = 20_000;
/** How long what must not change is looked at. */
export const staysMs = 1500;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Money {
  readonly usd: number;
  readonly assumedUsd: number;
  readonly reservedUsd: number;
}

export interface Usage {
  readonly limits: readonly { name: string; unit: Rule["unit"]; used: number; reserved: number; remaining: number }[];
  readonly jobs: readonly {
    model: string;
    status: string;
    reservedUsd: number;
    costUsd: number | null;
    admittedAt: string;
    endedAt: string | null;
  }[];
}

export class Attacked {
  readonly server: Server;
  readonly upstream: ScriptedUpstream;

  private constructor(server: Server, upstream: ScriptedUpstream) {
    this.server = server;
    this.upstream = upstream;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<Attacked> {
    const upstream = await new ScriptedUpstream().listen();
    const server = await Server.start({
      settings: {
        UPSTREAM_URL: upstream.url,
        UPSTREAM_API_KEY: upstreamKey,
        // Any origin will do: the test brings the notices itself.
        PUBLIC_URL: "http://gateway.example.com",
        MEDIA_HOSTS: new URL(upstream.url).host,
        ...settings,
      },
      floodLimit: 1_000_000,
    });
    const attacked = new Attacked(server, upstream);
    await attacked.operate("PUT", `/admin/models/${opened}`, { passthrough: true, maxUsd: openedUsd });
    return attacked;
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.upstream.close();
  }

  async user(name: string, rules: readonly Rule[] = [], maxCostUsd?: number): Promise<User> {
    const asked = { user: name, plan: "unlimited", rules, ...(maxCostUsd !== undefined && { maxCostUsd }) };
    const minted = await this.ask("POST", "/tokens", testSettings.APP_SECRET, asked);
    return new User(this, name, String(minted.body["token"]));
  }

  /** Whoever comes from that address. */
  async visitor(address: string): Promise<User> {
    const headers = { "CF-Connecting-IP": address };
    const session = await this.ask("POST", "/sessions", "none", {}, headers);
    return new User(this, String(session.body["user"]), String(session.body["token"]), headers);
  }

  /** The same limits for visitors, whichever plan sessions have. */
  async limitVisitors(rules: readonly Rule[]): Promise<void> {
    for (const plan of ["anonymous", "developer", "free"]) await this.operate("PUT", `/admin/plans/${plan}`, { rules });
  }

  async operate(method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.ask(method, path, testSettings.ADMIN_TOKEN, body);
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  }

  /** As the upstream does: it knows the way from the job's own `webhook`. */
  notify(job: UpstreamJob, body: object = { id: job.id, ...job.state }): Promise<Answer> {
    return this.notifyAt(job.webhook ?? "", body);
  }

  notifyAt(webhook: string, body: object): Promise<Answer> {
    return this.ask("POST", new URL(webhook).pathname, "none", body);
  }

  async ask(
    method: string,
    path: string,
    bearer: string,
    body?: object,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const headers = { Authorization: `Bearer ${bearer}`, ...more };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(this.server.url + path, { method, headers, ...sent });
    const said = await response.text();
    return { status: response.status, headers: response.headers, text: said, body: parsed(said) };
  }
}

export class User {
  readonly name: string;
  readonly #attacked: Attacked;
  readonly #token: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(attacked: Attacked, name: string, token: string, headers: Readonly<Record<string, string>> = {}) {
    this.name = name;
    this.#attacked = attacked;
    this.#token = token;
    this.#headers = headers;
  }

  ask(method: string, path: string, body?: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#attacked.ask(method, path, this.#token, body, { ...this.#headers, ...headers });
  }

  run(model: string, input: object, others: object = {}): Promise<Answer> {
    return this.ask("POST", `/v2/${model}/run`, { input, ...others });
  }

  /** A job that was taken: its handle, and the upstream's side of it. */
  async start(model: string, input: object, others: object = {}): Promise<{ handle: string; job: UpstreamJob }> {
    const answer = await this.run(model, input, others);
    expect(answer.status, answer.text).toBe(200);
    const handle = String(answer.body["id"]);
    return { handle, job: this.#attacked.upstream.jobOf(handle) };
  }

  status(model: string, handle: string): Promise<Answer> {
    return this.ask("GET", `/v2/${model}/status/${handle}`);
  }

  chat(body: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.ask("POST", `/v2/${text}/openai/v1/chat/completions`, { model: text, ...body }, headers);
  }

  async usage(): Promise<Usage> {
    const { status, body, text: said } = await this.ask("GET", "/usage");
    expect(status, said).toBe(200);
    return body as unknown as Usage;
  }

  /** As the operator sees it; a user who was admitted nothing is not known. */
  async money(): Promise<Money> {
    const { status, body } = await this.#attacked.ask("GET", `/admin/users/${this.name}`, testSettings.ADMIN_TOKEN);
    if (status === 404) return { usd: 0, assumedUsd: 0, reservedUsd: 0 };
    expect(status, JSON.stringify(body)).toBe(200);
    return body["spent"] as Money;
  }

  /** Comes to be exactly that, and stays so. */
  async expectMoney(due: Partial<Money>, withinMs = settlesWithinMs): Promise<void> {
    let money: Money | undefined;
    const comes = eventually(JSON.stringify(due), withinMs, async () => {
      money = await this.money();
      return matches(money, due);
    });
    await comes.catch(() => expect(money).toMatchObject(due));
    await setTimeout(staysMs);
    expect(await this.money()).toMatchObject(due);
  }
}

function matches(money: Money, due: Partial<Money>): boolean {
  return Object.entries(due).every(([name, usd]) => money[name as keyof Money] === usd);
}

/** Events and the like are no JSON. */
function parsed(said: string): Answer["body"] {
  try {
    return JSON.parse(said) as Answer["body"];
  } catch {
    return {};
  }
}
