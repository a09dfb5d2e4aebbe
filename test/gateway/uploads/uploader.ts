// An app's user who uploads: announces a file, puts it, and looks at what is left of the quota.
import { runInDurableObject, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { app } from "../../../src/app.ts";
import type { UserMeter } from "../../../src/index.ts";
import { type CacheInFront, contextWith } from "../../support/cache-in-front.ts";
import { isolate } from "../../support/callers.ts";
import { testSettings } from "../../support/settings.ts";

export const origin = "https://sluice.test";

export interface Announced {
  readonly id: string;
  readonly url: string;
  readonly type: string;
  readonly bytes: number;
  readonly expiresAt: string;
  readonly put: { readonly url: string; readonly headers: Record<string, string> };
}

interface Ask {
  readonly token?: string | undefined;
  readonly headers?: Record<string, string> | undefined;
  readonly body?: BodyInit | undefined;
  readonly json?: unknown;
}

/** A JPEG by its first bytes, the rest as it comes. */
export function jpeg(bytes: number): Uint8Array<ArrayBuffer> {
  return fileOf([0xff, 0xd8, 0xff, 0xe0], bytes);
}

export function fileOf(head: readonly number[], bytes: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at++) file[at] = (at * 31 + (at >> 8)) & 0xff;
  file.set(head.slice(0, bytes));
  return file;
}

/** One isolate. */
export class Uploader {
  readonly env: Env;
  cache: CacheInFront | undefined;

  constructor(settings: Partial<Record<keyof Env, unknown>> = {}) {
    this.env = isolate(settings);
  }

  async ask(method: string, url: string, { token, headers, body, json }: Ask = {}): Promise<Response> {
    const request = new Request(new URL(url, origin), {
      method,
      headers: { ...headers, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
      ...(body !== undefined && { body }),
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    const ctx = contextWith(this.cache);
    const response = await app.fetch(request, this.env, ctx);
    const whole = response.body === null ? response : new Response(await response.arrayBuffer(), response);
    await waitOnExecutionContext(ctx);
    return whole;
  }

  async token(user: string, more: object = { plan: "unlimited" }): Promise<string> {
    const response = await this.ask("POST", "/tokens", { token: testSettings.APP_SECRET, json: { user, ...more } });
    return (await response.json<{ token: string }>()).token;
  }

  announce(token: string | undefined, more: object = {}): Promise<Response> {
    return this.ask("POST", "/uploads", { token, json: { type: "image/jpeg", bytes: 1000, ...more } });
  }

  async announced(token: string, more: object = {}): Promise<Announced> {
    const response = await this.announce(token, more);
    if (response.status !== 200) throw new Error(await response.text());
    return response.json();
  }

  put({ put }: Pick<Announced, "put">, body: BodyInit | undefined, headers: Record<string, string> = {}) {
    return this.ask("PUT", put.url, { body, headers: { ...put.headers, ...headers } });
  }

  /** A file that is there. */
  async uploaded(token: string, file: Uint8Array<ArrayBuffer> = jpeg(1000), more: object = {}): Promise<Announced> {
    const announced = await this.announced(token, { bytes: file.byteLength, ...more });
    const response = await this.put(announced, file);
    if (response.status !== 201) throw new Error(await response.text());
    return announced;
  }

  async list(token: string, query = ""): Promise<{ uploads: { id: string }[]; cursor: string | null }> {
    return (await this.ask("GET", `/uploads${query}`, { token })).json();
  }

  /** Of each rule for uploads: what is used, and what of that is reserved. */
  async used(token: string): Promise<Record<string, [used: number, reserved: number]>> {
    const response = await this.ask("GET", "/usage", { token });
    const { limits } = await response.json<{
      limits: { name: string; unit: string; used: number; reserved: number }[];
    }>();
    const ofUploads = limits.filter(({ unit }) => unit === "bytes" || unit === "stored");
    return Object.fromEntries(ofUploads.map(({ name, used, reserved }) => [name, [used, reserved]]));
  }
}

/** A plan that counts uploads. */
export const counted = {
  rules: [
    { unit: "bytes", limit: 1_000_000, per: "day" },
    { unit: "stored", limit: 500_000 },
  ],
  plan: "unlimited",
};

/** The names of the files in the bucket. */
export async function filesInBucket(): Promise<string[]> {
  const { objects } = await env.MEDIA.list({ prefix: "uploads/" });
  return objects.map(({ key }) => key);
}

export async function inMeter<T>(payer: string, work: (meter: UserMeter, state: DurableObjectState) => T): Promise<T> {
  return runInDurableObject(env.USER_METER.getByName(payer), (meter, state) => work(meter as UserMeter, state));
}
