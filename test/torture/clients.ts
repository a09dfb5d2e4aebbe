// The app's users: they submit, poll, cancel and leave, and judge each answer as it comes.
import { type Fate, fateOf } from "./chance.ts";
import { pause, upstreamKey } from "./hostile-upstream.ts";

export const model = "tortured";
/** How long after a kill an answer may still be its fault. */
const excusedMs = 5_000;

/** Node's fetch never ends reading a compressed answer that it leaves in the middle. */
const plain = { "Accept-Encoding": "identity" };

export interface Accepted {
  readonly handle: string;
  readonly user: string;
}

export class Clients {
  readonly accepted: Accepted[] = [];
  readonly faults: string[] = [];
  /** Answers by status and code, and the exchanges that broke. */
  readonly answers = new Map<string, number>();
  killedAt = Number.NEGATIVE_INFINITY;
  readonly #url: string;
  readonly #tokens: ReadonlyMap<string, string>;
  readonly #seed: number;
  #next = 0;

  constructor(url: string, tokens: ReadonlyMap<string, string>, seed: number) {
    this.#url = url;
    this.#tokens = tokens;
    this.#seed = seed;
  }

  get submitted(): number {
    return this.#next;
  }

  async run(lanes: number, until: number): Promise<void> {
    const lane = async () => {
      while (Date.now() < until) await this.#one(this.#next++);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }

  async #one(n: number): Promise<void> {
    const fate = fateOf(this.#seed, n);
    const job = await this.#submit(n, fate);
    if (!job) return pause(20);
    const accepted = { handle: job, user: fate.user };
    this.accepted.push(accepted);
    if (fate.cancels) await this.ask(fate.user, "POST", `/v2/${model}/cancel/${job}`);
    for (let polls = 0; polls < 2; polls++) {
      await pause(50);
      await this.status(accepted);
    }
  }

  /** The job's handle, where an answer came and took it. */
  async #submit(n: number, fate: Fate): Promise<string | undefined> {
    const body = JSON.stringify({ input: { n }, policy: { ttl: 10_000 } });
    const headers: Record<string, string> = fate.idempotent ? { "Idempotency-Key": `key-${n}` } : {};
    const signal = fate.leavesAfterMs === undefined ? undefined : AbortSignal.timeout(fate.leavesAfterMs);
    const path = `/v2/${model}/${fate.operation}${fate.operation === "runsync" ? "?wait=2000" : ""}`;
    const answer = await this.ask(fate.user, "POST", path, { body, headers, ...(signal && { signal }) });
    return answer?.status === 200 ? answer.body.id : undefined;
  }

  async status({ user, handle }: Accepted): Promise<{ status: number; state: string } | undefined> {
    const answer = await this.ask(user, "GET", `/v2/${model}/status/${handle}`);
    return answer && { status: answer.status, state: String(answer.body.status) };
  }

  async ask(user: string, method: string, path: string, init: RequestInit = {}) {
    const headers = { ...init.headers, ...plain, Authorization: `Bearer ${this.#tokens.get(user)}` };
    const sentAt = Date.now();
    try {
      const response = await fetch(this.#url + path, { ...init, method, headers });
      const text = await response.text();
      this.#judge(response, text, `${method} ${path}`, sentAt);
      return { status: response.status, body: JSON.parse(text) as { id: string; status: string; code?: string } };
    } catch (error) {
      this.#count(error instanceof SyntaxError ? "no JSON" : "broken exchange");
      if (error instanceof SyntaxError) this.faults.push(`${method} ${path} was answered with no JSON`);
      return undefined;
    }
  }

  #judge(response: Response, text: string, what: string, sentAt: number): void {
    const code = response.status < 400 ? "" : ` ${(JSON.parse(text) as { code: string }).code}`;
    this.#count(`${response.status}${code}`);
    const said = text + JSON.stringify([...response.headers]);
    if (said.includes(upstreamKey)) this.faults.push(`${what} was answered with the upstream's key`);
    const excused = sentAt - this.killedAt < excusedMs || Date.now() - this.killedAt < excusedMs;
    const explained = code.startsWith(" UPSTREAM_") || (excused && code !== " INTERNAL");
    if (response.status >= 500 && !explained) this.faults.push(`${what} was answered with ${response.status}${code}`);
  }

  #count(what: string): void {
    this.answers.set(what, (this.answers.get(what) ?? 0) + 1);
  }
}
