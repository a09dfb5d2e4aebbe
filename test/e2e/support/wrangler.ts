// A wrangler of the tests' own, and somebody before a terminal: what a deployment asks of both, in order.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Asked, type Deployer, deploy, Stopped } from "../../../src/cli/deployment.ts";
import { root } from "../../../src/cli/wrangler.ts";

/** What the account is like. */
export interface AccountState {
  readonly loggedIn?: boolean;
  readonly accounts?: readonly { id: string; name: string }[];
  /** Undefined where the Worker was never deployed. */
  secrets?: string[];
  r2?: "enabled" | "not enabled" | "forbidden";
  readonly fails?: boolean;
}

export interface Deployed {
  readonly done: boolean;
  /** Why it stopped, if it did. */
  readonly stopped: string;
  readonly said: string;
  readonly asked: readonly string[];
  readonly commands: readonly string[];
  /** What the deployment was given, and read of wrangler's configuration at that moment. */
  readonly secrets: Record<string, string> | undefined;
  readonly config: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
}

const newWorker = `${"Worker not found"}\nIf this is a new Worker, run \`wrangler deploy\` first to create it.`;
export const noR2 = "Please enable R2 through the Cloudflare Dashboard. [code: 10042]";

/** A folder with a copy of wrangler.toml. */
export function copyConfig(change: (text: string) => string = (text) => text): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "wrangler.toml"), change(readFileSync(join(root, "wrangler.toml"), "utf8")));
  mkdirSync(join(folder, "src"));
  cpSync(join(root, "src/index.ts"), join(folder, "src/gateway-only.ts"));
  return folder;
}

interface Scene {
  readonly account?: AccountState;
  /** One answer a question; undefined where there is no terminal. */
  readonly answers?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly folder?: string;
  /** Another reader than one of the account. */
  readonly read?: Deployer["read"];
  readonly asked?: Partial<Asked>;
  /** What happens before a question is answered. */
  readonly onAsk?: (question: string) => void;
}

export async function deployed({ account = {}, answers, env = {}, onAsk, ...scene }: Scene): Promise<Deployed> {
  const folder = scene.folder ?? copyConfig();
  const [said, asked, commands]: [string[], string[], string[]] = [[], [], []];
  let secrets: Record<string, string> | undefined;
  let config: string | undefined;
  const own = { ...env };
  const left = [...(answers ?? [])];
  const answer = async (question: string) => {
    asked.push(question);
    onAsk?.(question);
    const next = left.shift();
    if (next === undefined) throw new Error(`nobody answers: ${question}`);
    return next;
  };
  const deployer: Deployer = {
    folder,
    env: own,
    terminal: answers && { ask: answer, askSecret: answer, say: (text) => void said.push(text) },
    read: async (args) => {
      commands.push(args.join(" "));
      return (scene.read ?? readerOf(account))(args);
    },
    run: async (args) => {
      commands.push(args.join(" "));
      const after = (option: string) => (args.includes(option) ? args[args.indexOf(option) + 1] : undefined);
      const file = after("--secrets-file");
      secrets = file === undefined ? undefined : JSON.parse(readFileSync(file, "utf8"));
      config = readFileSync(join(folder, after("--config") ?? "wrangler.toml"), "utf8");
      if (account.fails) return 1;
      const targets = ["https://sluice.example.workers.dev"];
      const report = own["WRANGLER_OUTPUT_FILE_PATH"];
      if (report) writeFileSync(report, `${JSON.stringify({ type: "deploy", version: 1, targets })}\n`);
      return 0;
    },
    say: (text) => void said.push(text),
    setBucketRule: async () => {
      commands.push("bucket rule");
      return true;
    },
    pageWithToken: async (address, appSecret) => `${address}/#token=of-${appSecret.length}-letters`,
  };
  const wanted = { dryRun: false, uploads: true, ...scene.asked };
  let stopped = "";
  const done = await deploy(deployer, wanted).catch((error: unknown) => {
    if (!(error instanceof Stopped)) throw error;
    stopped = error.message;
    return false;
  });
  return { done, stopped, said: said.join("\n"), asked, commands, secrets, config, env: own, folder };
}

/** Reads as the real one does, from an account like this. */
export function readerOf(account: AccountState): Deployer["read"] {
  return async (args) => {
    const answer = answerOf(args.join(" "), account);
    return { ...answer, output: answer.stdout };
  };
}

/** In the words of the real one; test/e2e/deploy.test.ts holds that they are. */
function answerOf(command: string, { loggedIn = true, accounts, secrets, r2 = "enabled" }: AccountState) {
  if (command === "whoami --json") {
    const said = { loggedIn, accounts: accounts ?? [{ id: "account-1", name: "One" }] };
    return { status: loggedIn ? 0 : 1, stdout: JSON.stringify(loggedIn ? said : { loggedIn }) };
  }
  if (command === "secret list --format json") {
    if (secrets === undefined) return { status: 1, stdout: newWorker };
    return { status: 0, stdout: JSON.stringify(secrets.map((name) => ({ name, type: "secret_text" }))) };
  }
  if (command === "r2 bucket list") {
    if (r2 === "enabled") return { status: 0, stdout: "Listing buckets...\n" };
    return { status: 1, stdout: r2 === "not enabled" ? noR2 : "Authentication error [code: 10000]" };
  }
  throw new Error(`no answer to wrangler ${command}`);
}
