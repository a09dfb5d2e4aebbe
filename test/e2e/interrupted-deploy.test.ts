// `npm run deploy`, ended while wrangler deploys: neither the secrets nor the copy of wrangler.toml stay behind.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { root } from "../../src/cli/wrangler.ts";
import { copyCheckout } from "./support/checkout.ts";

const clone = copyCheckout();
const temporary = join(clone.path, "temporary");
afterAll(clone.remove);

/** All packages but one. */
beforeAll(() => {
  const packages = join(clone.path, "node_modules");
  const bin = join(packages, "wrangler/bin");
  rmSync(packages);
  mkdirSync(bin, { recursive: true });
  mkdirSync(temporary);
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name !== "wrangler") symlinkSync(join(root, "node_modules", name), join(packages, name));
  }
  cpSync(join(import.meta.dirname, "support/wrangler-that-waits.js"), join(bin, "wrangler.js"));
});

const copies = () => readdirSync(clone.path).filter((name) => name.startsWith("wrangler."));

it.each([
  ["Ctrl-C, which every process of the terminal hears", "SIGINT", "group", 130],
  ["SIGTERM, which it alone hears", "SIGTERM", "itself", 143],
  ["SIGHUP, which it alone hears", "SIGHUP", "itself", 129],
] as const)("by %s", async (_, signal, whom, code) => {
  const env = { PATH: process.env["PATH"], HOME: clone.path, TMPDIR: temporary };
  const service = { UPSTREAM_URL: "https://jobs.example.com", UPSTREAM_API_KEY: "key-of-the-service".repeat(2) };
  const child = spawn(process.execPath, ["src/cli/deploy.ts"], {
    cwd: clone.path,
    env: { ...env, ...service },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
  const closed = once(child, "close");
  await vi.waitFor(() => expect(output).toContain("deploying with 6 secrets"), { timeout: 60_000, interval: 20 });
  const [own = ""] = readdirSync(temporary);
  expect(readFileSync(join(temporary, own, "secrets.json"), "utf8")).toContain(service.UPSTREAM_API_KEY);
  expect(copies()).toHaveLength(2);
  process.kill((whom === "group" ? -1 : 1) * (child.pid ?? 0), signal);
  expect(await closed).toEqual([code, null]);
  expect(output).toContain("wrangler has ended");
  expect(readdirSync(temporary)).toEqual([]);
  expect(copies()).toEqual(["wrangler.toml"]);
});
