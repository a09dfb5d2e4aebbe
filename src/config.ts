// The settings, parsed once: vars and secrets become a Config, or the faults, each with the setting's name.
import { type BuiltInPlan, type SettingName, type Settings, settingsSchema } from "./settings.ts";

const minSecretBytes = 32;

export interface Fault {
  readonly setting: SettingName;
  readonly problem: string;
}

/** Where jobs go: the embedded platform, or a real service. */
export type Upstream = { kind: "embedded" } | { kind: "remote"; url: string };

export interface Config {
  readonly local: boolean;
  readonly upstream: Upstream;
  /** Jobs are submitted with the first; it and the others, which it replaces, are asked with. */
  readonly upstreamKeys: readonly string[];
  readonly management: { url: string; keys: readonly string[] } | undefined;
  /** The first signs, all are accepted. */
  readonly signingSecrets: readonly string[];
  readonly appSecret: string | undefined;
  readonly adminToken: string;
  /** Account names by key. */
  readonly platformKeys: ReadonlyMap<string, string>;
  readonly jwt: { url: string; issuer: string; audience: string; planClaim: string | undefined } | undefined;
  readonly defaultPlan: string;
  readonly anonymous: "open" | "turnstile" | "off";
  readonly sessionPlan: BuiltInPlan;
  readonly turnstileSecret: string | undefined;
  readonly allowedOrigins: readonly string[];
  readonly publicUrl: string | undefined;
  readonly imageReuse: "seeded" | "always" | "never";
  readonly reuseScope: "user" | "shared";
  readonly imageLinks: "gateway" | "upstream";
  readonly mediaHosts: readonly string[];
  readonly webhookHosts: readonly string[];
  readonly budget: { dayMicroUsd: number | undefined; monthMicroUsd: number | undefined };
  /** By name; a load-balancing one with its workers' URLs. */
  readonly endpoints: ReadonlyMap<string, readonly string[] | undefined>;
  /** Micro-USD by account; an account without an amount has no limit. */
  readonly platformCredits: ReadonlyMap<string, number>;
  readonly sampleDelayMs: number;
}

export type Reading = { ok: true; config: Config } | { ok: false; faults: readonly Fault[] };

/** All that is wrong at once: what one setting demands of the others is asked even where a third cannot be read. */
export function readConfig(env: object): Reading {
  const { settings, unreadable } = readEach(env);
  const demands = [...missing(settings), ...weak(settings), ...unsafe(settings)];
  const faults = [
    ...unreadable,
    ...demands.filter(({ setting }) => !unreadable.some((known) => known.setting === setting)),
  ];
  return faults.length > 0 ? { ok: false, faults } : { ok: true, config: settle(settings) };
}

/** Each setting by itself; one that cannot be read is as if it were not there. */
function readEach(env: object): { settings: Settings; unreadable: Fault[] } {
  const parsed = settingsSchema.safeParse(env);
  if (parsed.success) return { settings: parsed.data, unreadable: [] };
  const unreadable = parsed.error.issues.map(({ path, message }) => ({
    setting: path[0] as SettingName,
    problem: message,
  }));
  const rest = Object.fromEntries(unreadable.map(({ setting }) => [setting, undefined]));
  return { settings: settingsSchema.parse({ ...env, ...rest }), unreadable };
}

const secrets = ["SIGNING_SECRET", "APP_SECRET", "ADMIN_TOKEN", "PLATFORM_API_KEY", "UPSTREAM_API_KEY"] as const;

/** What is required, and by what if it is another setting. */
function demandsOf({
  UPSTREAM_URL,
  MANAGEMENT_URL,
  JWKS_URL,
  ANONYMOUS,
}: Settings): Map<SettingName, string | undefined> {
  const demands = new Map<SettingName, string | undefined>();
  for (const setting of ["SIGNING_SECRET", "ADMIN_TOKEN"] as const) demands.set(setting, undefined);
  // Without it nobody gets in there, which is right where nothing is asked of the platform.
  if (!UPSTREAM_URL) demands.set("PLATFORM_API_KEY", undefined);
  if (MANAGEMENT_URL) demands.set("UPSTREAM_API_KEY", "MANAGEMENT_URL");
  if (UPSTREAM_URL) demands.set("UPSTREAM_API_KEY", "UPSTREAM_URL");
  if (JWKS_URL) demands.set("JWT_ISSUER", "JWKS_URL").set("JWT_AUDIENCE", "JWKS_URL");
  if (ANONYMOUS === "turnstile") demands.set("TURNSTILE_SECRET", "ANONYMOUS = turnstile");
  return demands;
}

function missing(settings: Settings): Fault[] {
  return [...demandsOf(settings)]
    .filter(([setting]) => settings[setting] === undefined)
    .map(([setting, by]) => ({ setting, problem: by ? `is required with ${by}` : "is required" }));
}

/** Secrets are long enough outside a developer's machine. */
function weak(settings: Settings): Fault[] {
  if (settings.LOCAL === "true") return [];
  const used = demandsOf(settings);
  return secrets
    .filter((setting) => used.has(setting) || setting === "APP_SECRET" || setting === "PLATFORM_API_KEY")
    .filter((setting) => secretsIn(settings[setting]).some((secret) => byteLength(secret) < minSecretBytes))
    .map((setting) => ({ setting, problem: `must be at least ${minSecretBytes} bytes` }));
}

/** Outside a developer's machine no key travels in the clear, nor is fetched so, and no visitor spends without a limit. */
function unsafe(settings: Settings): Fault[] {
  if (settings.LOCAL === "true") return [];
  const urls: SettingName[] = ["UPSTREAM_URL", "MANAGEMENT_URL", "JWKS_URL", "PUBLIC_URL"];
  const faults: Fault[] = urls
    .filter((setting) => String(settings[setting] ?? "https:").startsWith("http:"))
    .map((setting) => ({ setting, problem: "must be an https URL" }));
  if (settings.SESSION_PLAN === "developer") {
    faults.push({ setting: "SESSION_PLAN", problem: "the plan developer is there only with LOCAL = true" });
  }
  return faults;
}

function secretsIn(value: string | readonly string[] | ReadonlyMap<string, string> | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : [...(value instanceof Map ? value.keys() : value.values())];
}

function settle(settings: Settings): Config {
  const local = settings.LOCAL === "true";
  const platformKeys = settings.PLATFORM_API_KEY ?? new Map<string, string>();
  const [ownKey = ""] = platformKeys.keys();
  const { JWKS_URL, JWT_ISSUER, JWT_AUDIENCE, JWT_PLAN_CLAIM } = settings;
  return {
    local,
    upstream: settings.UPSTREAM_URL
      ? { kind: "remote", url: settings.UPSTREAM_URL.replace(/\/+v2$/, "") }
      : { kind: "embedded" },
    upstreamKeys: (settings.UPSTREAM_URL ? settings.UPSTREAM_API_KEY : undefined) ?? [ownKey],
    management:
      settings.MANAGEMENT_URL && settings.UPSTREAM_API_KEY
        ? { url: settings.MANAGEMENT_URL, keys: settings.UPSTREAM_API_KEY }
        : undefined,
    signingSecrets: settings.SIGNING_SECRET ?? [],
    appSecret: settings.APP_SECRET,
    adminToken: settings.ADMIN_TOKEN ?? "",
    platformKeys,
    jwt:
      JWKS_URL && JWT_ISSUER && JWT_AUDIENCE
        ? { url: JWKS_URL, issuer: JWT_ISSUER, audience: JWT_AUDIENCE, planClaim: JWT_PLAN_CLAIM }
        : undefined,
    defaultPlan: settings.DEFAULT_PLAN ?? "free",
    anonymous: settings.ANONYMOUS ?? (local ? "open" : "off"),
    sessionPlan: settings.SESSION_PLAN ?? (local ? "developer" : "anonymous"),
    turnstileSecret: settings.TURNSTILE_SECRET,
    allowedOrigins: settings.ALLOWED_ORIGINS ?? (local ? ["*"] : []),
    publicUrl: settings.PUBLIC_URL,
    imageReuse: settings.IMAGE_REUSE ?? "seeded",
    reuseScope: settings.REUSE_SCOPE ?? "user",
    imageLinks: settings.IMAGE_LINKS ?? "gateway",
    mediaHosts: settings.MEDIA_HOSTS ?? [],
    webhookHosts: settings.WEBHOOK_HOSTS ?? (local ? ["localhost", "127.0.0.1"] : []),
    budget: { dayMicroUsd: settings.BUDGET_DAY_USD, monthMicroUsd: settings.BUDGET_MONTH_USD },
    endpoints: settings.ENDPOINTS ?? new Map(),
    platformCredits: settings.PLATFORM_CREDITS ?? new Map(),
    sampleDelayMs: settings.SAMPLE_DELAY_MS ?? 400,
  };
}

/** Where we are reached from outside. */
export function ownOrigin({ publicUrl }: Pick<Config, "publicUrl">, requestUrl: string): string {
  return publicUrl ?? new URL(requestUrl).origin;
}

function byteLength(value: string): number {
  return new TextEncoder().encode(value).byteLength;
}
