// The address that `npm run deploy` ends with, asked of a gateway as it is deployed.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { deployedTo, pageWithToken } from "../../src/cli/first-token.ts";
import { Server } from "../support/serve.ts";
import { testSettings } from "../support/settings.ts";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(() => server.stop());

it("carries a token of an hour, which opens the account of whoever deployed", async () => {
  const page = (await pageWithToken(server.url, testSettings.APP_SECRET)) ?? "";
  const [address, token = ""] = page.split("/#token=");
  expect(address).toBe(server.url);
  const usage = await fetch(`${server.url}/usage`, { headers: { Authorization: `Bearer ${token}` } });
  expect(usage.status).toBe(200);
  const { iat, exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  expect(exp - Math.floor(iat)).toBeLessThanOrEqual(3601);
});

it("is none where the secret is another", async () => {
  expect(await pageWithToken(server.url, "a secret that was replaced meanwhile", 1)).toBeUndefined();
});

it("is read from what wrangler writes of a deployment", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "output.ndjson");
  const told = [
    { type: "wrangler-session", version: 1 },
    { type: "deploy", version: 1, worker_name: "sluice", targets: ["https://sluice.example.workers.dev"] },
  ];
  writeFileSync(file, told.map((line) => `${JSON.stringify(line)}\n`).join(""));
  expect(deployedTo(file)).toBe("https://sluice.example.workers.dev");
});
