// What the gateway is given before the first client comes: settings, an endpoint beside the catalog, a wide plan, tokens.
import { testSettings } from "../support/settings.ts";
import { users } from "./chance.ts";
import { upstreamKey } from "./key-watch.ts";
import { models } from "./taken-job.ts";

export function settingsFor(upstreamUrl: string, seed: number): Record<string, string> {
  return {
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_API_KEY: upstreamKey,
    // Any origin will do: the upstream knows where its notices go.
    PUBLIC_URL: "http://gateway.example.com",
    MEDIA_HOSTS: new URL(upstreamUrl).host,
    REUSE_SCOPE: seed % 2 === 0 ? "shared" : "user",
  };
}

/** Answers with the users' tokens. */
export async function prepare(gateway: string): Promise<Map<string, string>> {
  await admin(gateway, "PUT", `/admin/models/${models.jobs}`, { passthrough: true, maxUsd: 0.01 });
  const rules = [
    { unit: "jobs", limit: 500 },
    { unit: "usd", limit: 100_000, per: "day" },
    { unit: "bytes", limit: 1e12, per: "day" },
    { unit: "stored", limit: 1e12 },
  ];
  await admin(gateway, "PUT", "/admin/plans/tortured", { rules });
  return mintTokens(gateway);
}

/** For a day. */
export async function mintTokens(gateway: string): Promise<Map<string, string>> {
  const tokens = new Map<string, string>();
  for (const user of users) {
    const claims = { user, plan: "tortured", ttlSeconds: 24 * 60 * 60 };
    const { token } = await call(gateway, "POST", "/tokens", testSettings.APP_SECRET, claims);
    tokens.set(user, String(token));
  }
  return tokens;
}

export function admin(gateway: string, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  return call(gateway, method, path, testSettings.ADMIN_TOKEN, body);
}

async function call(gateway: string, method: string, path: string, key: string, body?: object) {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await fetch(gateway + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}
