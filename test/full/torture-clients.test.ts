// A minute of torture's clients before its hostile upstream, three times, against `npm start`.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NpmStart } from "../e2e/support/npm-start.ts";
import { Unhurt } from "../e2e/support/unhurt.ts";
import { guardKey } from "../support/canary.ts";
import { testSettings } from "../support/settings.ts";
import { users } from "../torture/chance.ts";
import { Clients, model } from "../torture/clients.ts";
import { HostileUpstream, upstreamKey } from "../torture/hostile-upstream.ts";

const lanes = 12;
const attackedMs = 60_000;
const seeds = [1, 2, 3];

let upstream: HostileUpstream;
let server: NpmStart;
let unhurt: Unhurt;
const tokens = new Map<string, string>();

beforeAll(async () => {
  guardKey(upstreamKey);
  upstream = await new HostileUpstream(seeds[0] as number).listen();
  const settings = {
    UPSTREAM_URL: upstream.url,
    UPSTREAM_API_KEY: upstreamKey,
    // Any origin will do: the upstream knows where its notices go.
    PUBLIC_URL: "http://gateway.example.com",
  };
  server = await NpmStart.start({ settings });
  upstream.gateway = server.url;
  unhurt = new Unhurt(server);
  await send("PUT", `/admin/models/${model}`, testSettings.ADMIN_TOKEN, { passthrough: true, maxUsd: 0.01 });
  for (const user of users) {
    const { token } = await send("POST", "/tokens", testSettings.APP_SECRET, { user, plan: "unlimited" });
    tokens.set(user, token);
  }
});
afterAll(async () => {
  await server.stop();
  await upstream.close();
});

async function send(method: string, path: string, key: string, body: object): Promise<{ token: string }> {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
  expect(response.status).toBe(200);
  return (await response.json()) as { token: string };
}

describe.each(seeds)("torture's clients with seed %i", (seed) => {
  it("find no fault in a minute, and npm start serves on", async () => {
    const clients = new Clients(server.url, tokens, seed);
    await clients.run(lanes, Date.now() + attackedMs);
    expect(clients.faults).toEqual([]);
    expect(clients.accepted.length).toBeGreaterThan(0);
    if (seed === seeds[0]) await unhurt.settle();
    await unhurt.expect();
  });
});
