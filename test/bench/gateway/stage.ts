// Everything that a comparison needs, in one run: an upstream, the gateway in front of it, and what it is held against.
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import { type ServeOptions, Server } from "../../support/serve.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { testSettings } from "../../support/settings.ts";
import { serveBare } from "./bare-worker.ts";
import { workerSource } from "./workers/source.ts";

/**
 * `unmetered` is the gateway with a meter that admits everybody and stores nothing. `balanced` has the embedded platform,
 * whose endpoint has the upstream for its one worker; for `named` every host of the internet is the upstream.
 */
export type Subject = "passthrough" | "least" | "floor" | "gateway" | "unmetered" | "balanced" | "named";

/** As a table calls them. */
export const subjectNames: Readonly<Record<Subject, string>> = {
  passthrough: "bare passthrough",
  least: "least gateway",
  floor: "floor Worker",
  gateway: "Sluice",
  unmetered: "Sluice, without the meter",
  balanced: "Sluice, with its platform",
  named: "Sluice, before a named host",
};

/** What the catalog does not know and the operator opened: its input is not judged. */
export const openEndpoint = "bench";

export class Stage {
  readonly upstream: WorkerdProcess;
  readonly servers: Readonly<Record<Subject, WorkerdProcess>>;
  /** One for each payer. */
  readonly tokens: readonly string[];

  private constructor(upstream: WorkerdProcess, servers: Record<Subject, WorkerdProcess>, tokens: string[]) {
    this.upstream = upstream;
    this.servers = servers;
    this.tokens = tokens;
  }

  static async set(payers: number): Promise<Stage> {
    const upstream = await serveBare({ script: "upstream" });
    const passthrough = await serveBare({ script: "passthrough", upstream: upstream.url });
    const least = await serveBare({ script: "least", upstream: upstream.url });
    const floor = await serveBare({ script: "floor", upstream: upstream.url });
    const gateway = await serveGateway(upstream);
    const unmetered = await serveGateway(upstream, { standIns: { USER_METER: workerSource("no-meter") } });
    const balanced = await serveBalanced(upstream);
    const named = await serveGateway(
      upstream,
      { internetAt: new URL(upstream.url).host },
      "https://models.example.com",
    );
    const tokens: string[] = [];
    for (let n = 0; n < payers; n++) tokens.push(await mint(gateway, `payer-${n}`));
    return new Stage(upstream, { passthrough, least, floor, gateway, unmetered, balanced, named }, tokens);
  }

  async strike(): Promise<void> {
    const all = [this.upstream, ...Object.values(this.servers)];
    await Promise.all(all.map((server) => server.stop()));
  }
}

/** As a deployment before a real upstream is, with a plan that refuses nobody. */
export async function serveGateway(
  upstream: Pick<WorkerdProcess, "url">,
  options: ServeOptions = {},
  url = upstream.url,
): Promise<Server> {
  const settings = {
    UPSTREAM_URL: url,
    UPSTREAM_API_KEY: "key-of-the-upstream-0123456789abcdef",
    MEDIA_HOSTS: new URL(upstream.url).host,
    // Else no notice would be asked for, which a deployment does.
    PUBLIC_URL: "https://gateway.example.com",
  };
  const gateway = await Server.start({ ...options, settings, floodLimit: 1_000_000_000 });
  await tell(gateway, "/admin/plans/bench", { rules });
  await tell(gateway, `/admin/models/${openEndpoint}`, { passthrough: true, maxUsd: 0.01 });
  return gateway;
}

async function serveBalanced({ url }: Pick<WorkerdProcess, "url">): Promise<Server> {
  const server = await Server.start({ settings: { ENDPOINTS: `${openEndpoint}=${url}` }, floodLimit: 1_000_000_000 });
  await tell(server, "/admin/plans/bench", { rules });
  await tell(server, `/admin/models/${openEndpoint}`, { passthrough: true, maxUsd: 0.01 });
  return server;
}

/** As many rules as the plan `free` has, with limits that nobody reaches. */
export const rules: Rule[] = [
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

export async function mint(gateway: Server, user: string): Promise<string> {
  const init = { method: "POST", headers: { Authorization: `Bearer ${testSettings.APP_SECRET}` } };
  const response = await fetch(`${gateway.url}/tokens`, { ...init, body: JSON.stringify({ user, plan: "bench" }) });
  return ((await response.json()) as { token: string }).token;
}
