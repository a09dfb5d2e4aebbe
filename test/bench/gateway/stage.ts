// Everything that a comparison needs, in one run: an upstream, the gateway in front of it, and what it is held against.
import { Server } from "../../support/serve.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { testSettings } from "../../support/settings.ts";
import { serveBare } from "./bare-worker.ts";

export type Subject = "passthrough" | "floor" | "gateway";

/** What the catalog does not know and the operator opened: its input is not judged. */
export const openEndpoint = "bench";

export class Stage {
  readonly #upstream: WorkerdProcess;
  readonly servers: Readonly<Record<Subject, WorkerdProcess>>;
  /** One for each payer. */
  readonly tokens: readonly string[];

  private constructor(upstream: WorkerdProcess, servers: Record<Subject, WorkerdProcess>, tokens: string[]) {
    this.#upstream = upstream;
    this.servers = servers;
    this.tokens = tokens;
  }

  static async set(payers: number): Promise<Stage> {
    const upstream = await serveBare({ script: "upstream" });
    const passthrough = await serveBare({ script: "passthrough", upstream: upstream.url });
    const floor = await serveBare({ script: "floor", upstream: upstream.url });
    const settings = {
      UPSTREAM_URL: upstream.url,
      UPSTREAM_API_KEY: "key-of-the-upstream-0123456789abcdef",
      MEDIA_HOSTS: new URL(upstream.url).host,
      // Else no notice would be asked for, which a deployment does.
      PUBLIC_URL: "https://gateway.example.com",
    };
    const gateway = await Server.start({ settings, tmpfs: true, floodLimit: 1_000_000_000 });
    await tell(gateway, "/admin/plans/bench", { rules });
    await tell(gateway, `/admin/models/${openEndpoint}`, { passthrough: true, maxUsd: 0.01 });
    const tokens: string[] = [];
    for (let n = 0; n < payers; n++) tokens.push(await mint(gateway, `payer-${n}`));
    return new Stage(upstream, { passthrough, floor, gateway }, tokens);
  }

  async strike(): Promise<void> {
    const all = [this.#upstream, ...Object.values(this.servers)];
    await Promise.all(all.map((server) => server.stop()));
  }
}

/** As many rules as the plan `free` has, with limits that nobody reaches. */
const rules = [
  { unit: "requests", limit: 900_000_000, per: "minute" },
  { unit: "requests", limit: 900_000_000, per: "day" },
  { unit: "jobs", limit: 900_000_000 },
  { unit: "usd", limit: 900_000_000, per: "day" },
  { unit: "usd", limit: 900_000_000, per: "month" },
];

async function tell(gateway: Server, path: string, body: object): Promise<void> {
  const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
  const response = await fetch(gateway.url + path, { method: "PUT", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
}

async function mint(gateway: Server, user: string): Promise<string> {
  const init = { method: "POST", headers: { Authorization: `Bearer ${testSettings.APP_SECRET}` } };
  const response = await fetch(`${gateway.url}/tokens`, { ...init, body: JSON.stringify({ user, plan: "bench" }) });
  return ((await response.json()) as { token: string }).token;
}
