// The app's users: each turn is one of the operations, and each answer is judged as it comes.
import { isFinal } from "../../src/contract/states.ts";
import { type Fate, fateOf, type Scenario } from "./chance.ts";
import { add, type Operation } from "./counted.ts";
import { history } from "./history.ts";
import { KeyWatch } from "./key-watch.ts";
import { chat } from "./operations/chat.ts";
import { file } from "./operations/file.ts";
import { job } from "./operations/job.ts";
import { largeBody } from "./operations/large-body.ts";
import { picture } from "./operations/picture.ts";
import { retry } from "./operations/retry.ts";
import { streamed } from "./operations/streamed.ts";
import { upload } from "./operations/upload.ts";
import { webhook } from "./operations/webhook.ts";
import { pause } from "./pace.ts";
import { Weather } from "./weather.ts";

const betweenTurnsMs = 50;
/** Of the calls: a busy machine resets a connection now and then. */
const mostBroken = 0.0005;
/** Node's fetch never ends reading a compressed answer that it leaves in the middle. */
const plain = { "Accept-Encoding": "identity" };

/** A job whose handle its user has. */
export interface Accepted {
  readonly handle: string;
  readonly user: string;
  readonly model: string;
  /** Of the fate that its answers follow. */
  readonly n: number;
  /** Its picture was deleted, or is another's that may be. */
  mayBeGone: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** Empty where it is no JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

interface Asking extends RequestInit {
  /** Its answer streams: where the upstream breaks it off, or says the key in it, so does the gateway. */
  readonly mayBreak?: boolean;
}

export interface Turn {
  readonly n: number;
  readonly fate: Fate;
  readonly seed: number;
  readonly clients: Clients;
}

const scenarios: Readonly<Record<Scenario, (turn: Turn) => Promise<void>>> = {
  job,
  retry,
  streamed,
  chat,
  "large body": largeBody,
  picture,
  webhook,
  file,
  upload,
};

export class Clients {
  readonly accepted: Accepted[] = [];
  /** The keys of uploads that were taken, live for days and were not deleted. */
  readonly uploads = new Set<string>();
  /** The handles of jobs whose users were told their ends, and have not run them again. */
  readonly toldEnds = new Set<string>();
  readonly faults: string[] = [];
  /** Exchanges that ended in the middle, and no kill explains it. */
  readonly broken: string[] = [];
  readonly made = new Map<string, number>();
  /** Answers by status and code, and the exchanges that broke. */
  readonly answers = new Map<string, number>();
  /** Of a streamed job, how many chunks its user was given. */
  readonly handed = new Map<number, number>();
  readonly watch: KeyWatch;
  readonly weather: Weather;
  /** Where client webhooks are received. */
  readonly receiver: string;
  readonly url: string;
  tokens: ReadonlyMap<string, string>;
  readonly #seed: number;
  #next = 0;

  constructor(
    url: string,
    tokens: ReadonlyMap<string, string>,
    seed: number,
    around: { readonly receiver: string; readonly watch?: KeyWatch; readonly weather?: Weather },
  ) {
    this.url = url;
    this.tokens = tokens;
    this.#seed = seed;
    this.receiver = around.receiver;
    this.watch = around.watch ?? new KeyWatch();
    this.weather = around.weather ?? new Weather();
  }

  get turns(): number {
    return this.#next;
  }

  tooManyBroken(): readonly string[] {
    const calls = [...this.made.values()].reduce((sum, count) => sum + count, 0);
    return this.broken.length > calls * mostBroken ? this.broken : [];
  }

  async run(lanes: number, until: number): Promise<void> {
    const lane = async () => {
      while (Date.now() < until) await this.#turn(this.#next++);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }

  async #turn(n: number): Promise<void> {
    await this.weather.up;
    const fate = fateOf(this.#seed, n);
    await scenarios[fate.scenario]({ n, fate, seed: this.#seed, clients: this });
    await pause(betweenTurnsMs);
  }

  count(operation: Operation): void {
    add(this.made, operation);
  }

  authorization(user: string): { Authorization: string } {
    return { Authorization: `Bearer ${this.tokens.get(user)}` };
  }

  /** The job, where an answer came and took it. */
  accept(answer: Answer | undefined, job: Omit<Accepted, "handle" | "mayBeGone">, mayBeGone = false) {
    const handle = answer?.body["id"];
    if (answer?.status !== 200 || typeof handle !== "string") return undefined;
    const accepted = { ...job, handle, mayBeGone };
    this.accepted.push(accepted);
    return accepted;
  }

  async status({ user, handle, model, n }: Accepted): Promise<{ status: number; state: string } | undefined> {
    this.count("status");
    const init = { mayBreak: fateOf(this.#seed, n).scenario === "large body" };
    const answer = await this.ask(user, "GET", `/v2/${model}/status/${handle}`, init);
    return answer && { status: answer.status, state: String(answer.body["status"]) };
  }

  /** How the job ended; undefined where nobody said it in time. */
  async ended(job: Accepted, withinMs: number): Promise<string | undefined> {
    for (const until = Date.now() + withinMs; Date.now() < until; ) {
      const seen = await this.status(job);
      if (seen?.status === 200 && !seen.state.startsWith("IN_")) return seen.state;
      await pause(60);
    }
    return undefined;
  }

  async ask(user: string, method: string, path: string, how: Asking = {}): Promise<Answer | undefined> {
    const { mayBreak = false, ...init } = how;
    const headers = { ...this.authorization(user), ...init.headers, ...plain };
    const sentAt = Date.now();
    history.note(`client: ${method} ${path}`);
    try {
      const { status, headers: answered, body } = await fetch(this.url + path, { ...init, method, headers });
      const pieces: Uint8Array[] = [];
      for await (const piece of body ?? []) pieces.push(piece);
      return this.judge({ status, headers: answered, bytes: Buffer.concat(pieces) }, `${method} ${path}`, sentAt);
    } catch (error) {
      add(this.answers, "broken exchange");
      history.note(`client: ${method} ${path} was broken off: ${reasonOf(error)}`);
      // The end may have been in the answer that nobody got.
      this.toldEnds.add(handleIn(path));
      const isOwnDoing = init.signal?.aborted || mayBreak;
      if (isOwnDoing || this.weather.killed(sentAt)) return undefined;
      this.broken.push(`${method} ${path} was broken off after ${Date.now() - sentAt} ms: ${reasonOf(error)}`);
      return undefined;
    }
  }

  /** Also of what was read in another way. */
  judge(answer: Omit<Answer, "body">, what: string, sentAt: number): Answer {
    const { status, headers, bytes } = answer;
    this.watch.look("an answer", bytes, what);
    this.watch.look("the headers of an answer", JSON.stringify([...headers]), what);
    const body = headers.get("Content-Type") === "application/json" ? this.#parse(bytes, what) : {};
    const code = status < 400 ? "" : codeOf(body);
    add(this.answers, `${status} ${code}`.trim());
    if (code === "UPSTREAM_DOWN") this.weather.down += 1;
    if (status >= 400 && code === "") this.faults.push(`${what} was refused with ${status} and no code`);
    if (status >= 500 && !this.#explains(code, sentAt)) this.faults.push(`${what} was answered with ${status} ${code}`);
    history.note(`client: ${what} was answered with ${status} ${String(body["status"] ?? code)}`);
    if (status === 200) this.#hear(body, what);
    return { ...answer, body };
  }

  /** A stream says that the job is at its end, and not which job. */
  #hear({ id, status }: Answer["body"], what: string): void {
    const handle = String(id ?? handleIn(what));
    if (what.includes("/retry/")) this.toldEnds.delete(handle);
    else if (isFinal(String(status))) this.toldEnds.add(handle);
  }

  #parse(bytes: Uint8Array, what: string): Answer["body"] {
    try {
      return JSON.parse(Buffer.from(bytes).toString() || "{}") as Answer["body"];
    } catch {
      add(this.answers, "no JSON");
      this.faults.push(`${what} was answered with no JSON`);
      return {};
    }
  }

  #explains(code: string, sentAt: number): boolean {
    if (code === "UPSTREAM_DOWN") return this.weather.mayBeDown();
    // The key is right.
    if (code === "UPSTREAM_REFUSED") return false;
    if (/^(UPSTREAM|MEDIA)_/.test(code)) return true;
    const isOfStore = code === "UNAVAILABLE" && this.weather.troubled("stores", sentAt);
    const isOfObject = /^((CONTROL|METER)_)?UNAVAILABLE$/.test(code) && this.weather.troubled("objects", sentAt);
    return isOfStore || isOfObject || (this.weather.killed(sentAt) && code !== "INTERNAL");
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.message} ${String(error.cause ?? "")}` : String(error);
}

/** In the usual shape, or in OpenAI's. */
function codeOf({ code, error }: Answer["body"]): string {
  const nested = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return String(code ?? nested ?? "");
}

/** The job that a path ends with. */
function handleIn(path: string): string {
  return /\/([^/?]*)(\?.*)?$/.exec(path)?.[1] ?? "";
}
