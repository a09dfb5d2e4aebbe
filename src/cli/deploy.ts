// `npm run deploy`: asks for the secrets that the account does not have yet, creates what is missing, deploys.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { randomSecret } from "./dev-vars.ts";
import { readWrangler, root, wrangler } from "./wrangler.ts";

/** What pressing Enter means: a random value where ours will do, `none` where only the operator can know. */
const answers: Record<string, () => string> = {
  SIGNING_SECRET: randomSecret,
  APP_SECRET: randomSecret,
  ADMIN_TOKEN: randomSecret,
  PLATFORM_API_KEY: randomSecret,
  UPSTREAM_API_KEY: () => "none",
  TURNSTILE_SECRET: () => "none",
};

const dryRun = process.argv.includes("--dry-run");
const there = dryRun ? [] : await secretsOfTheAccount();
const missing = requiredSecrets().filter((name) => !there.includes(name));
if (dryRun) {
  console.log(`A first deployment asks for ${missing.join(", ")}.`);
  process.exit(await run(["deploy", "--minify", "--dry-run"]));
}
process.exit(await deployWith(await ask(missing)));

function requiredSecrets(): string[] {
  const [, names = ""] = /^required = \[([^\]]*)\]/m.exec(readFileSync(`${root}wrangler.toml`, "utf8")) ?? [];
  return [...names.matchAll(/"(\w+)"/g)].map(([, name]) => name as string);
}

/** None where the Worker was never deployed. Any other failure ends here: to ask again would replace secrets in use. */
async function secretsOfTheAccount(): Promise<string[]> {
  const { status, stdout, output } = await readWrangler(["secret", "list", "--format", "json"]);
  if (status === 0) return (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name);
  if (output.includes("If this is a new Worker, run")) return [];
  console.error(output);
  process.exit(1);
}

async function ask(names: string[]): Promise<Record<string, string>> {
  const given: Record<string, string> = {};
  if (names.length > 0 && !process.stdin.isTTY) {
    console.error(`Run this in a terminal: it asks for ${names.join(", ")}.`);
    process.exit(1);
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  for (const name of names) {
    const fallback = answers[name]?.() ?? "none";
    const hint = fallback === "none" ? "Enter: do without" : "Enter: a random one";
    const answer = (await terminal.question(`${name} (${hint}): `)).trim();
    given[name] = answer || fallback;
    if (!answer && fallback !== "none") console.log(`  ${name}=${fallback}   keep it: it cannot be read back`);
  }
  terminal.close();
  return given;
}

/** The secrets travel in a file that only this user can read, and that is gone afterwards. */
async function deployWith(secrets: Record<string, string>): Promise<number> {
  if (Object.keys(secrets).length === 0) return run(["deploy", "--minify"]);
  const folder = mkdtempSync(join(tmpdir(), "sluice-"));
  try {
    const file = join(folder, "secrets.json");
    writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 });
    return await run(["deploy", "--minify", "--secrets-file", file]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function run(args: string[]): Promise<number> {
  return new Promise((resolve) => wrangler(args).on("exit", (code) => resolve(code ?? 1)));
}
