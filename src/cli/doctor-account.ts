// The doctor before a deployment: login, account, R2, the Worker's secrets, and its settings by the Worker's own schema.
import { join } from "node:path";
import { chooseAccount, logIn, nameOne, type ReadWrangler, r2Page, readLogin, readR2, readSecrets } from "./account.ts";
import { faultsOf } from "./deployment-secrets.ts";
import { sayUnknown } from "./dev-vars.ts";
import { type Finding, fault, leftOut, ok, warning } from "./findings.ts";
import { readWorkerConfig, type WorkerConfig } from "./worker-config.ts";

export interface Before {
  readonly read: ReadWrangler;
  readonly folder: string;
  readonly env: Readonly<NodeJS.ProcessEnv>;
}

export async function checkAccount({ read, folder, env }: Before): Promise<Finding[]> {
  const config = readWorkerConfig(join(folder, "wrangler.toml"));
  const login = await readLogin(read);
  if ("problem" in login) {
    const rest = ["account", "R2", "secrets"].map((what) => leftOut(what, "nobody is logged in", logIn));
    return [fault("login", login.problem, logIn), ...rest, ...checkSettings(config, config.secrets.required)];
  }
  const chosen = chooseAccount(login.accounts, config, env);
  if ("among" in chosen) {
    const names = chosen.among.map(({ id, name }) => `${name} ${id}`).join(", ");
    const rest = ["R2", "secrets"].map((what) => leftOut(what, "the account is not known", nameOne));
    return [
      ok("login", "yes"),
      fault("account", names, nameOne),
      ...rest,
      ...checkSettings(config, config.secrets.required),
    ];
  }
  const name = login.accounts.find(({ id }) => id === chosen.id)?.name;
  const [bucket, secrets] = await Promise.all([checkR2(read, config), checkSecrets(read, config)]);
  return [ok("login", "yes"), ok("account", name ?? chosen.id ?? "the one that the token is for"), bucket, ...secrets];
}

async function checkR2(read: ReadWrangler, { vars, r2_buckets }: WorkerConfig): Promise<Finding> {
  if (r2_buckets.length === 0) return ok("R2", "wrangler.toml names no bucket: there are no uploads");
  const found = await readR2(read);
  if (found === "enabled") return ok("R2", "enabled");
  if (found !== "not enabled") {
    return fault("R2", found.problem, "A token needs the permission to edit R2. Or: npm run deploy -- --no-uploads");
  }
  const enable = `Enable it at ${r2Page}`;
  return vars["UPSTREAM_URL"]
    ? warning("R2", "not enabled in this account", `${enable} Without it npm run deploy goes on without uploads.`)
    : fault("R2", "not enabled in this account", `${enable} The demo keeps its pictures there.`);
}

async function checkSecrets(read: ReadWrangler, config: WorkerConfig): Promise<Finding[]> {
  const { required } = config.secrets;
  const found = await readSecrets(read);
  if ("problem" in found) return [fault("secrets", found.problem, logIn), ...checkSettings(config, required)];
  const settings = checkSettings(config, required);
  if (found.names === undefined) return [ok("secrets", "not deployed yet: npm run deploy asks for them"), ...settings];
  const missing = required.filter((name) => !found.names?.includes(name));
  const secrets =
    missing.length === 0
      ? ok("secrets", "all are there; what they hold cannot be read")
      : fault(
          "secrets",
          `missing: ${missing.join(", ")}`,
          "npm run deploy asks for them. Or: npx wrangler secret put NAME",
        );
  return [secrets, ...settings];
}

/** With secrets that are taken for good ones. */
function checkSettings({ vars }: WorkerConfig, secrets: readonly string[]): Finding[] {
  const faults = [...faultsOf(vars, {}, secrets), ...sayUnknown("wrangler.toml", vars)];
  if (faults.length > 0) {
    return faults.map((problem) =>
      fault("settings", problem, "Correct it in wrangler.toml. docs/settings.md has every setting."),
    );
  }
  const origins = String(vars["ALLOWED_ORIGINS"] ?? "").trim();
  const front = String(vars["UPSTREAM_URL"] ?? "").trim() || "the embedded platform: a demo";
  const pages = origins
    ? ok("pages", `may call: ${origins}`)
    : warning(
        "pages",
        "none of another origin may call",
        "Set ALLOWED_ORIGINS in wrangler.toml, if an app's page is to call.",
      );
  return [ok("settings", `in front of ${front}`), pages];
}
