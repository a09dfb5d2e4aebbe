// `npm run bench -- --url URL [--token TOKEN]`: how long a deployment takes to answer whoever sits here, one call after another.
import { quantile } from "./statistics.ts";

export interface Elsewhere {
  /** Where the gateway is reached. */
  readonly url: string;
  /** A user's; without it a session's is asked for. */
  readonly token?: string | undefined;
  readonly model?: string | undefined;
  /** Of each kind of call that costs nothing. */
  readonly requests?: number | undefined;
}

export interface ElsewhereRow {
  readonly what: string;
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /** What the gateway itself says that it took, and whom it waited for the longest. */
  readonly ownP50: number | undefined;
  readonly waitedFor: string;
}

export const bounds = { requests: { default: 50, max: 200 }, runs: 20 } as const;
const defaultModel = "black-forest-labs-flux-1-schnell";
const timeoutMs = 120_000;

/** Throws what to do where the deployment does not play along. */
export async function measureElsewhere({ url, token, model = defaultModel, requests }: Elsewhere) {
  const count = requests ?? bounds.requests.default;
  if (!Number.isInteger(count) || count < 1 || count > bounds.requests.max) {
    throw new Error(`--requests: expected 1 to ${bounds.requests.max}`);
  }
  const base = new URL(url).origin;
  const caller = new Caller(token ?? (await sessionAt(base)));
  const input = (seed: number) => ({ input: { prompt: "a lighthouse at dusk", seed, width: 256, height: 256 } });
  const seed = Math.floor(Math.random() * 2 ** 31);
  const runs = Math.min(count, bounds.runs);
  console.error(`At ${base}: ${runs + 1} jobs of ${model} are paid for, and ${3 * count} calls cost nothing.`);

  const made = await caller.json(`${base}/v2/${model}/runsync?wait=90000`, input(seed));
  const link = made.output?.image_url;
  if (made.status !== "COMPLETED" || link === undefined) throw new Error(`The first job ended as ${made.status}.`);
  const submit = (at: number) => caller.ask(`${base}/v2/${model}/run`, input(at));
  return [
    await rowOf("hit", count, () => submit(seed)),
    await rowOf("status", count, () => caller.ask(`${base}/v2/${model}/status/${made.id}`)),
    await rowOf("run", runs, (at) => submit((seed + at + 1) % 2 ** 31)),
    await rowOf("picture", count, () => caller.ask(link)),
  ];
}

interface Job {
  readonly id: string;
  readonly status: string;
  readonly output?: { readonly image_url?: string };
}

class Caller {
  readonly #headers: Record<string, string>;

  constructor(token: string) {
    this.#headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  }

  /** Read to its end. */
  async ask(address: string, body?: object): Promise<Response> {
    const post = body && { method: "POST", body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(address, { headers: this.#headers, redirect: "manual", signal, ...post });
    const whole = new Response(await response.arrayBuffer(), response);
    if (response.ok) return whole;
    throw new Error(`${new URL(address).pathname} answered ${response.status}: ${(await whole.text()).slice(0, 300)}`);
  }

  async json(address: string, body: object): Promise<Job> {
    return (await this.ask(address, body)).json() as Promise<Job>;
  }
}

async function sessionAt(base: string): Promise<string> {
  const answer = await fetch(`${base}/sessions`, {
    method: "POST",
    body: "{}",
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (answer.ok) return ((await answer.json()) as { token: string }).token;
  throw new Error(`${base} gives no sessions (${answer.status}): name a user's token with --token`);
}

async function rowOf(what: string, count: number, ask: (at: number) => Promise<Response>): Promise<ElsewhereRow> {
  const [tookMs, ownMs]: [number[], number[]] = [[], []];
  const waited = new Map<string, number>();
  for (let at = 0; at < count; at++) {
    const startedAt = performance.now();
    const response = await ask(at);
    tookMs.push(performance.now() - startedAt);
    for (const [step, ms] of readTiming(response)) {
      if (step === "total") ownMs.push(ms);
      else waited.set(step, (waited.get(step) ?? 0) + ms);
    }
  }
  const [longest] = [...waited].filter(([, ms]) => ms > 0).sort(([, left], [, right]) => right - left);
  return {
    what,
    count,
    p50: quantile(tookMs, 0.5),
    p95: quantile(tookMs, 0.95),
    p99: quantile(tookMs, 0.99),
    ownP50: ownMs.length > 0 ? quantile(ownMs, 0.5) : undefined,
    waitedFor: longest ? `${longest[0]}, ${(longest[1] / count).toFixed(1)} ms` : "nobody",
  };
}

/** A cache's answer has the gateway's words of another day: they say nothing of this call. */
function readTiming(response: Response): [string, number][] {
  if (response.headers.get("Cf-Cache-Status") === "HIT") return [];
  const said = response.headers.get("Server-Timing") ?? "";
  return [...said.matchAll(/([a-z]+);dur=(\d+)/g)].map(([, step = "", ms]) => [step, Number(ms)]);
}
