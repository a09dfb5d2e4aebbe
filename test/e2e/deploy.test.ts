// `npm run deploy`: what a dry run tells, and when the real one stops before it could do harm.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ensureDevVars } from "../../src/cli/dev-vars.ts";
import { copyCheckout, run } from "./support/checkout.ts";

const deploy = "src/cli/deploy.ts";
const secrets = "SIGNING_SECRET, APP_SECRET, ADMIN_TOKEN, PLATFORM_API_KEY, UPSTREAM_API_KEY, TURNSTILE_SECRET";
const clone = copyCheckout();
afterAll(clone.remove);

describe("npm run deploy -- --dry-run", () => {
  it("tells what would be asked and bound, asks nothing, and leaves LOCAL=true on this machine", async () => {
    ensureDevVars(join(clone.path, ".dev.vars"));
    const dry = run(clone.path, [deploy, "--dry-run"]);
    expect(await dry.ended).toBe(0);
    expect(dry.output()).toContain(`A first deployment asks for ${secrets}.`);
    expect(dry.output()).toMatch(/env\.UPSTREAM_URL/);
    expect(dry.output()).toMatch(/env\.LOCAL \(""\)/);
    expect(dry.output()).toContain("--dry-run: exiting now.");
    expect(dry.output()).not.toMatch(/warning|error/i);
  });
});

describe("npm run deploy", () => {
  it("asks for every secret where the Worker was never deployed, and only in a terminal", async () => {
    const first = await deployTo({ status: 404, code: 10007, message: "This Worker does not exist on your account." });
    expect(first.status).toBe(1);
    expect(first.output).toContain(`Run this in a terminal: it asks for ${secrets}.`);
    expect(first.calls.every((call) => call.startsWith("GET "))).toBe(true);
  });

  it("stops where the account's secrets cannot be read: asking anew would replace those in use", async () => {
    const refused = await deployTo({ status: 403, code: 10000, message: "Authentication error" });
    expect(refused.status).toBe(1);
    expect(refused.output).toContain("Authentication error");
    expect(refused.output).not.toContain("it asks for");
    expect(refused.calls.every((call) => call.startsWith("GET "))).toBe(true);
  });
});

/** Against an account that answers every call with one error. */
async function deployTo({ status, code, message }: { status: number; code: number; message: string }) {
  const calls: string[] = [];
  const account = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`);
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ success: false, errors: [{ code, message }], messages: [], result: null }));
  }).listen(0, "127.0.0.1");
  await once(account, "listening");
  const { port } = account.address() as AddressInfo;
  const process = run(clone.path, [deploy], {
    CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${port}`,
    CLOUDFLARE_API_TOKEN: "token-of-the-tests",
    CLOUDFLARE_ACCOUNT_ID: "account-of-the-tests",
  });
  const ended = await process.ended;
  account.close();
  expect(calls.length).toBeGreaterThan(0);
  return { status: ended, output: process.output(), calls };
}
