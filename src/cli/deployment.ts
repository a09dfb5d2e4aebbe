// A deployment, step by step: what it is to be, login and R2, the secrets that are missing, and what it ends with.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseAccount, logIn, nameOne, type ReadWrangler, r2Page, readLogin, readR2, readSecrets } from "./account.ts";
import { entryFor, keepUpstream, withoutBucket } from "./deployed-config.ts";
import { askSecrets, faultsOf, type Secrets, takeSecrets } from "./deployment-secrets.ts";
import { deployedTo } from "./first-token.ts";
import { removeAtEnd } from "./interruption.ts";
import type { Terminal } from "./terminal.ts";
import { readWorkerConfig, type WorkerConfig } from "./worker-config.ts";

/** Where it is done, and by whom. */
export interface Deployer {
  /** The checkout. */
  readonly folder: string;
  readonly terminal: Terminal | undefined;
  /** wrangler is told the account and the file for its report by variables. */
  readonly env: NodeJS.ProcessEnv;
  readonly read: ReadWrangler;
  readonly run: (args: readonly string[]) => Promise<number>;
  readonly say: (text: string) => void;
  readonly setBucketRule: () => Promise<boolean>;
  readonly pageWithToken: (address: string, appSecret: string) => Promise<string | undefined>;
}

export interface Asked {
  readonly dryRun: boolean;
  readonly uploads: boolean;
}

/** A step that failed: one sentence on what was seen, and what to do about it. */
export class Stopped extends Error {}

export async function deploy(deployer: Deployer, asked: Asked): Promise<boolean> {
  return asked.dryRun ? tryOut(deployer, asked) : deployTo(await prepare(deployer, asked), deployer);
}

/** Needs no account, and changes nothing. */
async function tryOut(deployer: Deployer, { uploads }: Asked): Promise<boolean> {
  const { folder, run, say, env } = deployer;
  const { vars, secrets } = configOf(folder);
  say(`A first deployment asks for ${secrets.required.join(", ")}.`);
  const entry = entryFor(folder, textOf(vars["UPSTREAM_URL"]) || textOf(env["UPSTREAM_URL"]));
  const dry = (configArgs: string[]) => run(["deploy", ...entry, "--minify", "--dry-run", ...configArgs]);
  return (uploads ? await dry([]) : await withoutBucket(folder, dry)) === 0;
}

interface Prepared {
  readonly upstreamUrl: string;
  readonly origins: string;
  readonly uploads: boolean;
  readonly secrets: Secrets;
}

async function prepare(deployer: Deployer, asked: Asked): Promise<Prepared> {
  const { folder, terminal, env, read, say } = deployer;
  await chooseLogin(deployer);
  const inAccount = await readSecrets(read);
  if ("problem" in inAccount) throw new Stopped(`${inAccount.problem}\nThe account's secrets cannot be read. ${logIn}`);
  const upstreamUrl = await findUpstreamUrl(deployer, inAccount.names === undefined);
  const { vars: kept, secrets: needed } = configOf(folder);
  const vars = { ...kept, UPSTREAM_URL: upstreamUrl };
  const there = inAccount.names ?? [];
  const missing = needed.required.filter((name) => !there.includes(name));
  const secrets = terminal ? await askSecrets(missing, vars, terminal) : takeSecrets(missing, env);
  const faults = faultsOf(vars, secrets.given, there);
  if (faults.length > 0)
    throw new Stopped(`The Worker would refuse these settings:\n  ${faults.join("\n  ")}\n${setThem}`);
  const uploads = asked.uploads && (await hasR2(deployer, upstreamUrl));
  // Only what is sure to be deployed is kept.
  if (kept["UPSTREAM_URL"] !== upstreamUrl) keepUpstream(folder, upstreamUrl);
  if (secrets.made.length > 0) say(`Made at random, and shown nowhere: ${secrets.made.join(", ")}. ${knownOnes}`);
  return { upstreamUrl, origins: textOf(kept["ALLOWED_ORIGINS"]), uploads, secrets };
}

const setThem =
  "Nothing was deployed. Vars stand in wrangler.toml; secrets are asked for in a terminal, and taken from the environment without one.";
const knownOnes = "npx wrangler secret put NAME replaces one by a value that you know.";

async function chooseLogin({ read, env, terminal, folder }: Deployer): Promise<void> {
  const login = await readLogin(read);
  if ("problem" in login) throw new Stopped(`${login.problem}\n${logIn} Then: npm run deploy`);
  const chosen = chooseAccount(login.accounts, configOf(folder), env);
  if ("id" in chosen) return;
  const lines = chosen.among.map(({ id, name }, index) => `  ${index + 1}  ${name}  ${id}`).join("\n");
  if (!terminal) throw new Stopped(`There is more than one account:\n${lines}\n${nameOne}`);
  terminal.say(`There is more than one account:\n${lines}`);
  for (;;) {
    const account = chosen.among[Number(await terminal.ask("Which one? ")) - 1];
    if (!account) continue;
    env["CLOUDFLARE_ACCOUNT_ID"] = account.id;
    return;
  }
}

/** What wrangler.toml says, else the environment, else the answer. Empty is the demo. */
async function findUpstreamUrl({ folder, terminal, env }: Deployer, isFirst: boolean): Promise<string> {
  const { vars } = configOf(folder);
  const known = textOf(vars["UPSTREAM_URL"]) || textOf(env["UPSTREAM_URL"]);
  if (known || !terminal || !isFirst) return known;
  terminal.say(
    "What is it to be?\n  1  a demo with everything: sample models, nothing real is made\n  2  in front of a real service",
  );
  let answer = "";
  while (answer !== "1" && answer !== "2") answer = await terminal.ask("1 or 2? ");
  while (answer !== "1") {
    const url = await terminal.ask("UPSTREAM_URL, the origin of the service: ");
    const fault = url && faultsOf({ UPSTREAM_URL: url }, {}, []).find((each) => each.startsWith("UPSTREAM_URL "));
    if (fault) terminal.say(`  ${fault}`);
    else if (url) return url;
  }
  return "";
}

/** Samples keep their pictures in the bucket: a demo does not go on without. */
async function hasR2({ read, terminal, say }: Deployer, upstreamUrl: string): Promise<boolean> {
  for (;;) {
    const found = await readR2(read);
    if (found === "enabled") return true;
    if (found !== "not enabled") {
      const way = upstreamUrl ? " Without uploads: npm run deploy -- --no-uploads" : "";
      throw new Stopped(
        `${found.problem}\nR2 cannot be asked for its buckets. A token needs the permission to edit R2.${way}`,
      );
    }
    const enable = `R2 is not enabled in this account. Enable it at ${r2Page}`;
    if (!terminal) {
      if (!upstreamUrl) throw new Stopped(`${enable}\nThe demo keeps its pictures there. Then: npm run deploy`);
      say(`${enable}\nThis deployment goes on without uploads. Once R2 is enabled, npm run deploy adds them.`);
      return false;
    }
    terminal.say(enable);
    const ways = upstreamUrl ? "Enter: ask again. without: go on without uploads. " : "Enter: ask again. ";
    if ((await terminal.ask(ways)) === "without" && upstreamUrl) return false;
  }
}

/** The secrets travel in a file that only this user can read, and that is gone afterwards. */
async function deployTo(prepared: Prepared, deployer: Deployer): Promise<boolean> {
  const { folder, run, env } = deployer;
  const { given } = prepared.secrets;
  const own = mkdtempSync(join(tmpdir(), "sluice-"));
  const remove = removeAtEnd(own);
  try {
    const [secretsFile, outputFile] = [join(own, "secrets.json"), join(own, "deployed.ndjson")];
    writeFileSync(secretsFile, JSON.stringify(given), { mode: 0o600 });
    env["WRANGLER_OUTPUT_FILE_PATH"] = outputFile;
    const secretsArgs = Object.keys(given).length > 0 ? ["--secrets-file", secretsFile] : [];
    const entry = entryFor(folder, prepared.upstreamUrl);
    const go = (configArgs: string[]) => run(["deploy", ...entry, "--minify", ...secretsArgs, ...configArgs]);
    const status = prepared.uploads ? await go([]) : await withoutBucket(folder, go);
    if (status !== 0) throw new Stopped(failedDeployment);
    return await sayWhatIs(prepared, deployer, deployedTo(outputFile));
  } finally {
    remove();
  }
}

const failedDeployment =
  "wrangler did not deploy; its words stand above. npm run doctor looks at login, R2, secrets and settings. " +
  "npm run deploy may be run again: what is there already is not made twice.";

async function sayWhatIs(prepared: Prepared, deployer: Deployer, address: string | undefined): Promise<boolean> {
  const { upstreamUrl, uploads, secrets, origins } = prepared;
  const { env, say, setBucketRule, pageWithToken } = deployer;
  const hasRule = !uploads || (await setBucketRule());
  say(`\nIt stands in front of ${upstreamUrl || "the embedded platform: sample models, nothing real is made"}.`);
  if (!origins) say("ALLOWED_ORIGINS is empty in wrangler.toml: no page of another origin may call.");
  if (address === undefined) return hasRule;
  const appSecret = secrets.given["APP_SECRET"] ?? env["APP_SECRET"];
  const page = appSecret === undefined ? undefined : await pageWithToken(address, appSecret);
  if (page) say(`Open it, for an hour, as a user of your own:\n\n  ${page}\n`);
  else say(`It serves at ${address}. ${appSecret === undefined ? noSecret : "It gave no token."}`);
  say(`Whether all of it works: npm run doctor -- ${address}`);
  return hasRule;
}

const noSecret = "With APP_SECRET set, npm run deploy prints an address with a token.";

function configOf(folder: string): WorkerConfig {
  return readWorkerConfig(join(folder, "wrangler.toml"));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
