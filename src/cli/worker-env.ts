// `npm run worker-env -- <endpoint>`: the environment that an unmodified worker of the real service needs to serve ours.
import { existsSync, readFileSync } from "node:fs";
import { parseArgs, parseEnv } from "node:util";
import { root } from "./wrangler.ts";

const usage = `npm run --silent worker-env -- <endpoint> [--url http://host:port] [--worker name] [--export]

  --url      where the worker reaches Sluice (default http://127.0.0.1:8787)
  --worker   the worker's name, one for each process (default: a random one)
  --export   lines for a shell instead of an --env-file

The key is the first one of PLATFORM_API_KEY, from the environment or from .dev.vars.`;

const namePattern = /^[\w.-]{1,128}$/;

export interface Attachment {
  readonly endpoint: string;
  readonly url: string;
  readonly key: string;
  readonly worker: string;
}

/** `$ID` and `$RUNPOD_POD_ID` stay as they are: the worker fills them in. It adds to the queries, so there is one. */
export function workerEnvironment({ endpoint, url, key, worker }: Attachment): Record<string, string> {
  const base = `${url.replace(/\/+$/, "")}/platform/v2/${endpoint}`;
  return {
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=none`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID`,
    RUNPOD_PING_INTERVAL: "10000",
    RUNPOD_AI_API_KEY: key,
    RUNPOD_ENDPOINT_ID: endpoint,
    RUNPOD_POD_ID: worker,
  };
}

/** One key of `key`, or of `account=key,account=key`. */
function firstKey(setting: string): string {
  const [first = ""] = setting.split(",");
  const [, key = setting.trim()] = /^\s*[\w-]{1,64}=([^=].*?)\s*$/.exec(first) ?? [];
  return key;
}

function keyOfThisMachine(): string | undefined {
  const devVars = `${root}.dev.vars`;
  const local = existsSync(devVars) ? parseEnv(readFileSync(devVars, "utf8")) : {};
  const setting = process.env["PLATFORM_API_KEY"] ?? local["PLATFORM_API_KEY"];
  return setting ? firstKey(setting) : undefined;
}

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      url: { type: "string", default: "http://127.0.0.1:8787" },
      worker: { type: "string", default: `worker-${crypto.randomUUID().slice(0, 8)}` },
      export: { type: "boolean", default: false },
    },
  });
  const [endpoint] = positionals;
  const key = keyOfThisMachine();
  if (!endpoint || !namePattern.test(endpoint) || !namePattern.test(values.worker)) fail(usage);
  if (!URL.canParse(values.url)) fail(`--url takes where Sluice is reached, not ${values.url}\n\n${usage}`);
  if (!key) fail("There is no PLATFORM_API_KEY: run `npm start` once, which writes .dev.vars, or set it.");
  const environment = workerEnvironment({ endpoint, url: values.url, key, worker: values.worker });
  for (const [name, value] of Object.entries(environment)) {
    console.log(values.export ? `export ${name}='${value.replaceAll("'", "'\\''")}'` : `${name}=${value}`);
  }
}

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

if (import.meta.main) main();
