// The doctor's calls of a deployment: bounded in time, and each answer is looked at for a secret.
import { SecretSearch } from "../json/secret-search.ts";

/** A call that was not answered, with the network's own word for it. */
export class NotReached extends Error {}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where it is no JSON object. */
  readonly json: Record<string, unknown> | undefined;
  readonly ms: number;
}

export interface Init {
  readonly method?: string;
  readonly key?: string | undefined;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

const callMs = 100_000;

export class Asker {
  readonly url: string;
  readonly #secrets: SecretSearch;
  /** What was asked when a secret came out. */
  readonly leaks = new Set<string>();
  answers = 0;

  constructor(url: string, secrets: readonly string[]) {
    this.url = url;
    this.#secrets = new SecretSearch(secrets);
  }

  async ask(path: string, init: Init = {}): Promise<Answer> {
    const begunAt = performance.now();
    const response = await this.open(path, init);
    const bytes = new Uint8Array(await response.arrayBuffer().catch(fail));
    this.look(path, bytes);
    const text = new TextDecoder().decode(bytes);
    const ms = Math.round(performance.now() - begunAt);
    return { status: response.status, headers: response.headers, text, json: parseObject(text), ms };
  }

  /** Its body is the caller's to read, and to have looked at. */
  async open(path: string, { method = "GET", key, headers = {}, body }: Init = {}): Promise<Response> {
    const sent = { ...headers, ...(key !== undefined && { Authorization: `Bearer ${key}` }) };
    const response = await fetch(new URL(path, this.url), {
      method,
      headers: body === undefined ? sent : { ...sent, "Content-Type": "application/json" },
      redirect: "manual",
      signal: AbortSignal.timeout(callMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(fail);
    this.answers++;
    const head = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    this.look(path, new TextEncoder().encode(head));
    return response;
  }

  look(path: string, bytes: Uint8Array): void {
    if (this.#secrets.finds(bytes)) this.leaks.add(path.replace(/\?.*/, ""));
  }
}

function fail(error: unknown): never {
  const { name, cause, message } = error as Error & { cause?: { code?: string; message?: string } };
  throw new NotReached(name === "TimeoutError" ? "no answer in time" : (cause?.code ?? cause?.message ?? message));
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** A refusal as the gateway writes it; of anything else the status alone. */
export function sayRefusal({ status, json }: Answer): string {
  const code = json?.["code"];
  return typeof code === "string" ? `${status} ${code}: ${String(json?.["detail"] ?? "").slice(0, 200)}` : `${status}`;
}
