// The settings of a developer's own machine: written once, never deployed, never committed.
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";

export function randomSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Every secret that wrangler.toml requires is named, so that nothing warns of a missing one. */
export function localSettings(): string {
  return [
    "# Written by `npm start`. Random secrets for this machine alone; `none` stands for one that is not needed.",
    "LOCAL=true",
    `SIGNING_SECRET=${randomSecret()}`,
    `APP_SECRET=${randomSecret()}`,
    `ADMIN_TOKEN=${randomSecret()}`,
    `PLATFORM_API_KEY=${randomSecret()}`,
    "UPSTREAM_API_KEY=none",
    "TURNSTILE_SECRET=none",
    "",
  ].join("\n");
}

/** Whether it had to be written. */
export function ensureDevVars(path: string): boolean {
  if (existsSync(path)) return false;
  writeFileSync(path, localSettings(), { mode: 0o600 });
  return true;
}
