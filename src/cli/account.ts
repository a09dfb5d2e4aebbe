// What the Cloudflare account says before a deployment: who is logged in, which account, R2, the Worker's secrets.
import type { WorkerConfig } from "./worker-config.ts";
import type { readWrangler } from "./wrangler.ts";

export type ReadWrangler = typeof readWrangler;

export interface Account {
  readonly id: string;
  readonly name: string;
}

export const logIn = "Run npx wrangler login. Where there is no browser, set CLOUDFLARE_API_TOKEN instead.";

export const nameOne = "Set CLOUDFLARE_ACCOUNT_ID to one of them, or account_id in wrangler.toml.";

/** The accounts of whoever is logged in, or wrangler's own words. A token may be allowed to name none. */
export async function readLogin(read: ReadWrangler): Promise<{ accounts: Account[] } | { problem: string }> {
  const { stdout, output } = await read(["whoami", "--json"]);
  const said = parseJson(stdout) as { loggedIn?: boolean; accounts?: Account[] } | undefined;
  if (said?.loggedIn) return { accounts: said.accounts ?? [] };
  return { problem: said?.loggedIn === false ? "You are not logged in." : output.trim() };
}

/** Which account wrangler would take; it asks nobody where it is read. */
export type Chosen = { readonly id: string | undefined } | { readonly among: readonly Account[] };

/** Named by wrangler.toml first, as wrangler has it. */
export function chooseAccount(
  accounts: readonly Account[],
  { account_id }: WorkerConfig,
  env: Readonly<NodeJS.ProcessEnv>,
): Chosen {
  const named = account_id || env["CLOUDFLARE_ACCOUNT_ID"];
  if (named) return { id: named };
  return accounts.length > 1 ? { among: accounts } : { id: accounts[0]?.id };
}

/** Undefined where the Worker was never deployed. Any other failure is a problem: asking again would replace secrets in use. */
export async function readSecrets(read: ReadWrangler): Promise<{ names: string[] | undefined } | { problem: string }> {
  const { status, stdout, output } = await read(["secret", "list", "--format", "json"]);
  if (status === 0) return { names: (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name) };
  return output.includes("If this is a new Worker, run") ? { names: undefined } : { problem: output.trim() };
}

/** The number of Cloudflare's error where R2 was never enabled in the account. */
const notEnabled = /\b10042\b/;

/** A new account must enable R2 by hand, once. */
export async function readR2(read: ReadWrangler): Promise<"enabled" | "not enabled" | { problem: string }> {
  const { status, output } = await read(["r2", "bucket", "list"]);
  if (status === 0) return "enabled";
  return notEnabled.test(output) ? "not enabled" : { problem: output.trim() };
}

export const r2Page = "https://dash.cloudflare.com/?to=/:account/r2/overview";

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
