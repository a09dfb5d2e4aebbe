// `npm run deploy`: what a dry run tells, and when the real one stops before it could do harm.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { ReadWrangler } from "../../src/cli/account.ts";
import { ensureDevVars } from "../../src/cli/dev-vars.ts";
import { checkAccount } from "../../src/cli/doctor-account.ts";
import { writeTable } from "../../src/cli/findings.ts";
import { copyCheckout, run as runIn } from "./support/checkout.ts";
import { deployed } from "./support/wrangler.ts";

/** An error of Cloudflare's interface. */
class Refusal {
  readonly status: number;
  readonly code: number;
  readonly message: string;

  constructor(status: number, code: number, message: string) {
    this.status = status;
    this.code = code;
    this.message = message;
  }
}

const deploy = "src/cli/deploy.ts";
const secrets = "SIGNING_SECRET, APP_SECRET, ADMIN_TOKEN, PLATFORM_API_KEY, UPSTREAM_API_KEY, TURNSTILE_SECRET";
const clone = copyCheckout();
afterAll(clone.remove);
/** wrangler is large: what Node compiled of it once serves all of its starts. */
const compiled = { NODE_COMPILE_CACHE: join(clone.path, "compiled") };
const run = (folder: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  runIn(folder, args, { ...compiled, ...env });

describe("npm run deploy -- --dry-run", () => {
  it("tells what would be asked and bound, asks nothing, and leaves LOCAL=true on this machine", async () => {
    ensureDevVars(join(clone.path, ".dev.vars"));
    const dry = run(clone.path, [deploy, "--dry-run"]);
    expect(await dry.ended).toBe(0);
    expect(dry.output()).toContain(`A first deployment asks for ${secrets}.`);
    expect(dry.output()).toMatch(/env\.UPSTREAM_URL/);
    expect(dry.output()).toMatch(/env\.LOCAL \(""\)/);
    expect(dry.output()).toMatch(/env\.MEDIA/);
    expect(dry.output()).toContain("--dry-run: exiting now.");
    expect(dry.output()).not.toMatch(/warning|error/i);
    expect(readdirSync(join(clone.path, "dist/site"))).toContain("index.html");
  });

  it("leaves the pages out where it is told so, and keeps the client", async () => {
    const dry = run(clone.path, [deploy, "--dry-run", "--no-pages"]);
    expect(await dry.ended).toBe(0);
    const entries = readdirSync(join(clone.path, "dist/site"), { recursive: true, withFileTypes: true });
    const built = entries.filter((entry) => entry.isFile()).map(({ name }) => name.replace(/^client-\w+/, "client-*"));
    expect(built.sort()).toEqual(["_headers", "client-*.js", "client.js"]);
  });

  it("takes the copy of wrangler.toml without the bucket, and the gateway alone before a real service", async () => {
    const options = ["--dry-run", "--no-pages", "--no-uploads"];
    const dry = run(clone.path, [deploy, ...options], { UPSTREAM_URL: "https://jobs.example.com" });
    expect(await dry.ended, dry.output()).toBe(0);
    expect(dry.output()).not.toMatch(/warning|error|env\.MEDIA \(/i);
    for (const binding of ["USER_METER", "ACCOUNT", "IMAGES", "FLOOD"])
      expect(dry.output()).toContain(`env.${binding} `);
    expect(readdirSync(clone.path).filter((name) => name.startsWith("wrangler."))).toEqual(["wrangler.toml"]);
  });

  it("knows its options", async () => {
    const wrong = run(clone.path, [deploy, "--dry"]);
    expect([await wrong.ended, wrong.output()]).toEqual([2, expect.stringContaining("There is no option --dry.")]);
  });
});

const login = { id: "user-1", email: "ada@example.com" };
const accounts = [{ id: "account-of-the-tests", name: "One" }];
/** As the account answers, by the last part of the path; anything else is an authentication error. */
const account = (others: Record<string, unknown>) => (request: IncomingMessage) => {
  const { pathname } = new URL(request.url ?? "", "http://account");
  if (pathname === "/user") return login;
  if (pathname === "/accounts") return accounts;
  if (pathname === "/memberships") return accounts.map((one) => ({ id: "m-1", account: one }));
  if (pathname === "/user/tokens/verify") return { status: "active" };
  return Object.entries(others).find(([ending]) => pathname.endsWith(ending))?.[1];
};
const neverDeployed = new Refusal(404, 10007, "This Worker does not exist on your account.");
const notEnabled = new Refusal(403, 10042, "Please enable R2 through the Cloudflare Dashboard.");

/** Each of wrangler's starts takes seconds on a busy machine. */
const patienceMs = 180_000;

describe.concurrent("the real wrangler's words", { timeout: patienceMs }, () => {
  const runWith = async (answer: ReturnType<typeof account>, args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
    const served = await serveAccount(answer);
    const process = run(clone.path, args, { ...served.env, ...env });
    const status = await process.ended;
    await served.close();
    return { status, output: process.output(), calls: served.calls };
  };
  const doctor = "src/cli/doctor.ts";

  /** Each command is run once: deploy and the doctor hear the same words. */
  const readWith = (env: NodeJS.ProcessEnv): ReadWrangler => {
    const heard = new Map<string, ReturnType<ReadWrangler>>();
    const start = async (args: readonly string[]) => {
      const { child, ended, output } = run(clone.path, ["node_modules/wrangler/bin/wrangler.js", ...args], env);
      let stdout = "";
      child.stdout.on("data", (data) => (stdout += data));
      const status = await ended;
      return { status, stdout, output: output() };
    };
    return (args) => {
      const command = args.join(" ");
      const words = heard.get(command) ?? start(args);
      heard.set(command, words);
      return words;
    };
  };

  it("where nobody is logged in", async () => {
    const read = readWith({});
    const { done, stopped } = await deployed({ read, folder: clone.path });
    const looked = writeTable(await checkAccount({ read, folder: clone.path, env: {} }));
    expect(done).toBe(false);
    for (const output of [stopped, looked]) {
      expect(output).toContain("You are not logged in.");
      expect(output).toContain("npx wrangler login");
    }
  });

  it("of a Worker that was never deployed, and an account without R2: a demo stops there", async () => {
    const served = await serveAccount(account({ "/secrets": neverDeployed, "/r2/buckets": notEnabled }));
    const read = readWith(served.env);
    const { done, stopped, commands } = await deployed({ read, folder: clone.path, env: served.env });
    expect(done, stopped).toBe(false);
    expect(stopped).toContain("The demo keeps its pictures there.");
    expect(stopped).toContain("https://dash.cloudflare.com/?to=/:account/r2/overview");
    expect(commands).toEqual(["whoami --json", "secret list --format json", "r2 bucket list"]);
    const looked = writeTable(await checkAccount({ read, folder: clone.path, env: served.env }));
    await served.close();
    expect(served.calls.every((call) => call.startsWith("GET "))).toBe(true);
    expect(looked).toMatch(/^ok +account +One$/m);
    expect(looked).toMatch(/^fault +R2 +not enabled in this account$/m);
    expect(looked).toMatch(/^ok +secrets +not deployed yet/m);
  });

  it("of an account with R2 and a deployment with all secrets", async () => {
    const all = secrets.split(", ").map((name) => ({ name, type: "secret_text" }));
    const looked = await runWith(account({ "/secrets": all, "/r2/buckets": { buckets: [] } }), [doctor]);
    expect(looked.status, looked.output).toBe(0);
    expect(looked.output).toMatch(/^ok +R2 +enabled$/m);
    expect(looked.output).toMatch(/^ok +secrets +all are there/m);
    expect(looked.output).toContain("No fault was found.");
  });

  it("where the account's secrets cannot be read: asking anew would replace those in use", async () => {
    const refused = await runWith(account({}), [deploy]);
    expect(refused.status).toBe(1);
    expect(refused.output).toContain("Authentication error");
    expect(refused.output).toContain("The account's secrets cannot be read.");
    expect(refused.calls.every((call) => call.startsWith("GET "))).toBe(true);
  });
});

/** Of util-linux: gives a process a terminal. */
const hasScript = existsSync("/usr/bin/script");

it.runIf(hasScript)(
  "asks in a terminal, and shows no secret there",
  { concurrent: true, timeout: patienceMs },
  async () => {
    const served = await serveAccount(account({ "/secrets": neverDeployed, "/r2/buckets": notEnabled }));
    const command = `"${process.execPath}" ${deploy}`;
    const env = { ...process.env, ...compiled, ...served.env, HOME: clone.path };
    const child = spawn("/usr/bin/script", ["-qec", command, "/dev/null"], { cwd: clone.path, env });
    let output = "";
    const prompt = "SIGNING_SECRET (Enter: a random one): ";
    const answers = new Map([
      ["1 or 2? ", "1\n"],
      [prompt, "typed-and-short\n"],
      ["SIGNING_SECRET must be at least 32 bytes", "\u0003"],
    ]);
    child.stdout.on("data", (data) => {
      output += data;
      for (const [question, answer] of answers) {
        if (!output.includes(question)) continue;
        answers.delete(question);
        child.stdin.write(answer);
      }
    });
    const [code] = await once(child, "exit");
    await served.close();
    expect(output).toContain("a demo with everything");
    expect(output).toContain(prompt);
    expect(output).toContain("SIGNING_SECRET must be at least 32 bytes");
    expect(output).not.toContain("typed-and-short");
    expect(output).not.toContain("Error");
    // Ctrl-C.
    expect(code).toBe(130);
  },
);

describe.concurrent("the bucket's lifecycle rule", { timeout: patienceMs }, () => {
  const rules: { id: string }[] = [];

  it("is set once, for uploads alone, and left as it is from then on", async () => {
    const account = await serveAccount((request, body) => {
      if (request.method === "PUT") rules.push(...(JSON.parse(body) as { rules: { id: string }[] }).rules);
      return { rules };
    });
    for (const time of ["first", "second"]) {
      const set = run(clone.path, ["src/cli/bucket-rule.ts"], account.env);
      expect(await set.ended, time + set.output()).toBe(0);
    }
    await account.close();
    expect(rules).toMatchObject([
      {
        id: "sluice-uploads",
        enabled: true,
        conditions: { prefix: "uploads/" },
        deleteObjectsTransition: { condition: { type: "Age", maxAge: 8 * 24 * 60 * 60 } },
      },
    ]);
    expect(account.calls.filter((call) => call.startsWith("PUT"))).toEqual([
      "PUT /accounts/account-of-the-tests/r2/buckets/sluice-media/lifecycle",
    ]);
  });

  it("says what to do by hand where it cannot be set", async () => {
    const account = await serveAccount(() => undefined);
    const set = run(clone.path, ["src/cli/bucket-rule.ts"], account.env);
    expect(await set.ended).toBe(1);
    await account.close();
    expect(set.output()).toContain(
      "wrangler r2 bucket lifecycle add sluice-media sluice-uploads uploads/ --expire-days 8",
    );
  });
});

/** An account that answers as it is told: with an error where it is told one, or nothing. */
async function serveAccount(answer: (request: IncomingMessage, body: string) => unknown) {
  const calls: string[] = [];
  const server = createServer(async (request, response) => {
    calls.push(`${request.method} ${request.url}`);
    let body = "";
    for await (const piece of request) body += piece;
    const said = answer(request, body) ?? new Refusal(403, 10000, "Authentication error");
    const refused = said instanceof Refusal ? said : undefined;
    const errors = refused ? [{ code: refused.code, message: refused.message }] : [];
    response.writeHead(refused?.status ?? 200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ success: !refused, errors, messages: [], result: refused ? null : said }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const env = {
    CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${port}`,
    CLOUDFLARE_API_TOKEN: "token-of-the-tests",
    CLOUDFLARE_ACCOUNT_ID: "account-of-the-tests",
  };
  return { calls, env, close: () => new Promise((resolve) => server.close(resolve)) };
}
