// 200 calls at once by one user who may make 50, at the gateway and at a counter in KV.
import { Server } from "../support/serve.ts";
import { testSettings } from "../support/settings.ts";
import { serveKvCounter } from "./serve-kv-counter.ts";
import { CountingUpstream } from "./upstream.ts";

export const calls = 200;
export const limit = 50;

const model = "black-forest-labs-flux-1-schnell";
const body = JSON.stringify({ input: { prompt: "a lighthouse at dusk" } });

/** One that is raced, and what became of its calls so far. */
export interface Contestant {
  readonly name: string;
  passed: number;
  refused: number;
  /** Neither passed nor refused by the limit: nothing that may happen. */
  failed: number;
  /** What its model service was handed, which is what costs money. */
  readonly handedOver: () => number;
  readonly race: () => Promise<unknown>;
}

/** Serves both, hands them over and ends them, whatever happens. */
export async function withContestants<T>(act: (gateway: Contestant, kv: Contestant) => Promise<T>): Promise<T> {
  const behindGateway = await new CountingUpstream().listen();
  const behindKv = await new CountingUpstream().listen();
  const gateway = await serveGateway(behindGateway);
  const kv = await serveKvCounter(behindKv.url);
  try {
    return await act(
      contestant("Sluice", gateway.url, await mint(gateway), behindGateway),
      contestant("a counter in KV", kv.url, "ada", behindKv),
    );
  } finally {
    await Promise.all([gateway.stop(), kv.stop(), behindGateway.close(), behindKv.close()]);
  }
}

function serveGateway(upstream: CountingUpstream): Promise<Server> {
  const settings = { UPSTREAM_URL: upstream.url, UPSTREAM_API_KEY: "key-of-the-model-service-0123456789abc" };
  return Server.start({ settings, tmpfs: true });
}

async function mint(gateway: Server): Promise<string> {
  const rules = [{ unit: "requests", limit, per: "day" }];
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const asked = JSON.stringify({ user: "ada", plan: "unlimited", rules });
  const response = await fetch(`${gateway.url}/tokens`, { method: "POST", headers, body: asked });
  return ((await response.json()) as { token: string }).token;
}

function contestant(name: string, url: string, token: string, upstream: CountingUpstream): Contestant {
  const one: Contestant = {
    name,
    passed: 0,
    refused: 0,
    failed: 0,
    handedOver: () => upstream.jobs,
    race: () => Promise.all(Array.from({ length: calls }, call)),
  };
  async function call(): Promise<void> {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await fetch(`${url}/v2/${model}/run`, { method: "POST", headers, body });
    await response.arrayBuffer();
    if (response.status === 200) one.passed += 1;
    else if (response.status === 429) one.refused += 1;
    else one.failed += 1;
  }
  return one;
}
