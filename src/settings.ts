// The settings one by one: what a var or a secret of each name may be, and what is read from it.
import * as z from "zod";
import { microUsd } from "./micro-usd.ts";

/** The plans that there are without the operator. The last one is there on a developer's machine alone. */
export const builtInPlanNames = ["anonymous", "free", "pro", "unlimited", "developer"] as const;
export type BuiltInPlan = (typeof builtInPlanNames)[number];

const none = "none";

const text = z
  .string()
  .trim()
  .transform((value) => (value === "" || value === none ? undefined : value))
  .optional();
const oneOf = <const T extends string>(...values: T[]) =>
  text.pipe(z.enum(values, { error: `expected one of ${values.join(", ")}` }).optional());
const list = text.transform((value) => {
  const items = splitList(value ?? "");
  return items.length > 0 ? items : undefined;
});
const hosts = list.pipe(
  z
    .array(
      z
        .string()
        .regex(/^[a-z0-9.:[\]-]+$/i, "expected host names")
        .toLowerCase(),
    )
    .optional(),
);
const usd = text.pipe(
  z
    .string()
    .regex(/^\d{1,9}(\.\d{1,6})?$/, "expected an amount in USD, such as 25 or 0.50")
    .transform((value) => microUsd(Number(value)))
    .optional(),
);
/** In its normal form, so that a scheme in capitals is no way around the checks below. */
const url = text.pipe(
  z
    .url({ protocol: /^https?$/, error: "expected a URL" })
    .transform((value) => new URL(value).href)
    .refine((value) => new URL(value).username === "" && new URL(value).password === "", "must carry no credentials")
    .optional(),
);
/** A URL that paths are put behind. */
const baseUrl = url
  .refine((value) => !value || !/[?#]/.test(value), "must carry no query and no fragment")
  .transform((value) => value?.replace(/\/+$/, ""));
/** Links are made of it and a path of their own, which our routes begin with. */
const ownUrl = baseUrl.refine(
  (value) => !value || new URL(value).origin === value,
  "must be an origin, such as https://ai.example.com, without a path",
);
/** What each account begins with: `account=USD,account=USD`, or one amount for each account. */
const credits = list.transform((items = [], context): ReadonlyMap<string, number> => {
  const amounts = items.map((item) => {
    const [, account = everyAccount, amount = ""] = /^(?:([\w-]{1,64})=)?(.*)$/.exec(item) ?? [];
    const micro = usd.safeParse(amount).data;
    if (micro === undefined) context.addIssue({ code: "custom", message: "expected an amount in USD, or account=USD" });
    return [account, micro ?? 0] as const;
  });
  return new Map(amounts);
});
export const everyAccount = "*";
const name = z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/, "expected letters, digits, - and _");

/** Where a worker of a load-balancing endpoint listens: an origin, since its paths are the callers'. */
export const workerUrl = z
  .url({ protocol: /^https?$/, error: "expected the http or https URL of a worker" })
  .refine((value) => /^[^/]+\/\/[^/?#@\\]+\/?$/.test(value.trim()), "must be an origin, such as http://10.0.0.7:8000")
  .transform((value) => new URL(value).origin);

/** Endpoints by name; those written as `name=url|url` are load-balancing ones, with their workers. */
const endpoints = list.transform((items = [], context) => {
  const named = items.map((item) => {
    const [, endpoint = item, urls] = /^([^=]*)=(.*)$/.exec(item) ?? [];
    const workers = z.array(workerUrl).safeParse(urls?.split("|") ?? []);
    if (!name.safeParse(endpoint).success || !workers.success) {
      context.addIssue({ code: "custom", message: "expected letters, digits, - and _, or name=url|url" });
    }
    return [endpoint, urls === undefined ? undefined : (workers.data ?? [])] as const;
  });
  return new Map(named);
});

/** Account names by key: `account=key,account=key`, or one bare key, which is the account `default`. */
const accounts = list.transform((items = [], context): ReadonlyMap<string, string> | undefined => {
  const [first, ...others] = items;
  if (first === undefined) return undefined;
  const pairs = items.flatMap((item) => {
    const [, account, key] = /^([\w-]{1,64})=([^=].*)$/.exec(item) ?? [];
    return account && key ? [[key, account] as const] : [];
  });
  if (pairs.length === 0 && others.length === 0) return new Map([[first, "default"]]);
  const keys = new Map(pairs);
  if (keys.size < items.length) {
    context.addIssue({ code: "custom", message: "expected one key, or account=key,account=key, each key once" });
  }
  return keys;
});

/** A backslash could not be told from those that JSON puts in front of others: such a key would not be found in an answer. */
const keyText = /^[\x21-\x5b\x5d-\x7e]+$/;

export const settingsSchema = z.object({
  LOCAL: oneOf("true", "false"),
  UPSTREAM_URL: baseUrl,
  UPSTREAM_API_KEY: list.pipe(
    z
      .array(z.string().regex(keyText, "expected one key, or new,old, of visible ASCII characters, no backslash"))
      .optional(),
  ),
  MANAGEMENT_URL: baseUrl,
  SIGNING_SECRET: list,
  APP_SECRET: text,
  ADMIN_TOKEN: text,
  PLATFORM_API_KEY: accounts,
  JWKS_URL: url,
  JWT_ISSUER: text,
  JWT_AUDIENCE: text,
  JWT_PLAN_CLAIM: text,
  DEFAULT_PLAN: text.pipe(name.optional()),
  ANONYMOUS: oneOf("open", "turnstile", "off"),
  SESSION_PLAN: oneOf(...builtInPlanNames),
  TURNSTILE_SECRET: text,
  // Read by the build of the pages.
  TURNSTILE_SITE_KEY: text,
  ALLOWED_ORIGINS: list.pipe(
    z
      .array(
        z
          .string()
          .regex(/^(\*|https?:\/\/(\*\.)?[a-z0-9.-]+(:\d+)?\/?)$/i, "expected origins, such as https://app.example.com")
          .toLowerCase()
          .transform((value) => value.replace(/\/$/, "")),
      )
      .optional(),
  ),
  PUBLIC_URL: ownUrl,
  IMAGE_REUSE: oneOf("seeded", "always", "never"),
  REUSE_SCOPE: oneOf("user", "shared"),
  IMAGE_LINKS: oneOf("gateway", "upstream"),
  MEDIA_HOSTS: hosts,
  WEBHOOK_HOSTS: hosts,
  BUDGET_DAY_USD: usd,
  BUDGET_MONTH_USD: usd,
  ENDPOINTS: endpoints,
  PLATFORM_CREDITS: credits,
  SAMPLE_DELAY_MS: text.pipe(
    z
      .string()
      .regex(/^\d{1,6}$/, "expected milliseconds, from 0 to 999999")
      .transform(Number)
      .optional(),
  ),
});
export type Settings = z.output<typeof settingsSchema>;
export type SettingName = keyof Settings;
export const settingNames = Object.keys(settingsSchema.shape) as readonly SettingName[];

function splitList(value: string): string[] {
  return value
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}
