// The secrets that a deployment gives: asked for in a terminal, else taken from the environment or made.
import { readConfig } from "../config.ts";
import { randomSecret } from "./dev-vars.ts";
import type { Terminal } from "./terminal.ts";

/** Any value will do for these; the others are known to the operator alone. */
const random = ["SIGNING_SECRET", "APP_SECRET", "ADMIN_TOKEN", "PLATFORM_API_KEY"];
/** Stands for a secret that the deployment does without. */
const none = "none";

export type Settings = Readonly<Record<string, unknown>>;
export interface Secrets {
  readonly given: Record<string, string>;
  /** Those that were made, whose values nobody has seen. */
  readonly made: readonly string[];
}

/** What the Worker would refuse, by its own schema. A secret that the account has is taken for a good one. */
export function faultsOf(vars: Settings, given: Settings, inAccount: readonly string[]): string[] {
  const kept = Object.fromEntries(inAccount.map((name) => [name, randomSecret()]));
  const reading = readConfig({ ...vars, ...kept, ...given, LOCAL: "" });
  return reading.ok ? [] : reading.faults.map(({ setting, problem }) => `${setting} ${problem}`);
}

export async function askSecrets(names: readonly string[], vars: Settings, terminal: Terminal): Promise<Secrets> {
  const given: Record<string, string> = {};
  for (const name of names)
    given[name] = isAsked(name, vars) ? await askSecret(name, vars, terminal) : fallbackOf(name);
  return { given, made: [] };
}

/** Nobody is asked for what this deployment does not use. */
function isAsked(name: string, vars: Settings): boolean {
  const hasUpstream = Boolean(vars["UPSTREAM_URL"]);
  if (name === "PLATFORM_API_KEY") return !hasUpstream;
  if (name === "UPSTREAM_API_KEY") return hasUpstream || Boolean(vars["MANAGEMENT_URL"]);
  return name !== "TURNSTILE_SECRET" || vars["ANONYMOUS"] === "turnstile";
}

function fallbackOf(name: string): string {
  return random.includes(name) ? randomSecret() : none;
}

async function askSecret(name: string, vars: Settings, terminal: Terminal): Promise<string> {
  const fallback = fallbackOf(name);
  const hint = fallback === none ? "do without" : "a random one";
  for (;;) {
    const answer = await terminal.askSecret(`${name} (Enter: ${hint}): `);
    const value = answer || fallback;
    const fault = faultsOf(vars, { [name]: value }, []).find((each) => each.startsWith(`${name} `));
    if (fault !== undefined) terminal.say(`  ${fault}`);
    else {
      if (!answer && fallback !== none) terminal.say(`  ${name}=${fallback}   keep it: it cannot be read back`);
      return value;
    }
  }
}

/** Without a terminal: by variables of the same names. */
export function takeSecrets(names: readonly string[], env: Readonly<NodeJS.ProcessEnv>): Secrets {
  const made = names.filter((name) => !env[name] && random.includes(name));
  const secretOf = (name: string) => env[name] || fallbackOf(name);
  return { given: Object.fromEntries(names.map((name) => [name, secretOf(name)])), made };
}
