// Turnstile: whether a visitor's page passed the challenge, asked of Cloudflare from the server.
import * as z from "zod";
import type { Config } from "../../config.ts";
import { isAllowedOrigin } from "../../http/cors.ts";
import { readBounded, tryParseJson } from "../../http/small-body.ts";
import type { Fetch } from "./jwks.ts";

const siteverify = "https://challenges.cloudflare.com/turnstile/v0/siteverify";
const timeoutMs = 5_000;
const maxBytes = 16 * 1024;

const verdictSchema = z.object({
  success: z.boolean(),
  hostname: z.string().optional(),
  "error-codes": z.array(z.string()).default([]),
});

/** Faults of the challenge itself; every other one is ours or Cloudflare's, and the visitor may try again. */
const visitorsFaults = new Set(["missing-input-response", "invalid-input-response", "timeout-or-duplicate"]);

export type Verdict = "passed" | "failed" | "unavailable";

export interface Challenge {
  readonly secret: string;
  readonly response: string;
  readonly address: string | undefined;
  readonly isOurs: (hostname: string) => boolean;
}

/** Each response counts once: asked without an idempotency key, Cloudflare refuses it the second time. */
export async function verifyTurnstile(challenge: Challenge, fetch: Fetch): Promise<Verdict> {
  const verdict = await ask(challenge, fetch).catch(() => undefined);
  if (!verdict) return "unavailable";
  if (verdict.success) return challenge.isOurs(verdict.hostname ?? "") ? "passed" : "failed";
  const codes = verdict["error-codes"];
  if (codes.every((code) => visitorsFaults.has(code))) return "failed";
  console.error(JSON.stringify({ setting: "TURNSTILE_SECRET", problem: codes.join(", ").slice(0, 200) }));
  return "unavailable";
}

async function ask({ secret, response, address }: Challenge, fetch: Fetch) {
  const body = JSON.stringify({ secret, response, ...(address && { remoteip: address }) });
  const headers = { "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await fetch(new Request(siteverify, { method: "POST", headers, body, redirect: "manual", signal }));
  const bytes = await readBounded(answer.body, maxBytes);
  return verdictSchema.parse(bytes && tryParseJson(bytes));
}

/** The hosts of the pages that may call; where none is named, the gateway's own. */
export function isOurHost(hostname: string, config: Config, ownUrl: string): boolean {
  const rules = config.allowedOrigins.length > 0 ? config.allowedOrigins : [config.publicUrl ?? ownUrl];
  return isAllowedOrigin(`https://${hostname.toLowerCase()}`, rules.map(withoutSchemeAndPort));
}

function withoutSchemeAndPort(rule: string): string {
  const host = /^https?:\/\/([^/:]+)/i.exec(rule)?.[1];
  return host === undefined ? rule : `https://${host.toLowerCase()}`;
}
