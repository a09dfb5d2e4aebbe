// A job as the hostile upstream has it: each time that it was run, what it says of itself now, and what it cost in truth.
import { choices, type Fate, fateOf, type Run, runOf } from "./chance.ts";
import { spelledKey } from "./key-watch.ts";

export const models = { jobs: "tortured", pictures: "z-image-turbo", text: "granite-4-0-h-small" } as const;
const chunkText = "a few words of it ";
const chunkMs = 60;
const largeBytes = 300_000;

interface TakenRun extends Run {
  readonly beganAt: number;
  readonly endsAt: number;
  cancelled: boolean;
  /** Chunks that `/stream` has given, each once. */
  handed: number;
}

export class TakenJob {
  readonly id: string;
  readonly n: number;
  readonly model: string;
  readonly fate: Fate;
  /** The path that its notices go to, which names the meter and the admission. */
  readonly hook: string;
  readonly runs: TakenRun[] = [];
  readonly #seed: number;
  readonly #mediaOrigin: string;
  #looks = 0;

  constructor(
    seed: number,
    { id, n, model, hook, mediaOrigin }: Pick<TakenJob, "id" | "n" | "model" | "hook"> & { mediaOrigin: string },
  ) {
    this.#seed = seed;
    this.id = id;
    this.n = n;
    this.model = model;
    this.fate = fateOf(seed, n);
    this.hook = hook;
    this.#mediaOrigin = mediaOrigin;
    this.run();
  }

  run(): void {
    const run = runOf(this.#seed, this.n, this.runs.length);
    const beganAt = Date.now();
    this.runs.push({ ...run, beganAt, endsAt: beganAt + run.runsMs, cancelled: false, handed: 0 });
  }

  get last(): TakenRun {
    return this.runs.at(-1) as TakenRun;
  }

  get status(): string {
    if (this.last.cancelled) return "CANCELLED";
    return Date.now() < this.last.endsAt ? "IN_PROGRESS" : this.last.ends;
  }

  cancel(): void {
    if (this.status === "IN_PROGRESS") this.last.cancelled = true;
  }

  /** What failed may be run again; of the rest chance lets some, as no service should. */
  retry(): boolean {
    const { status } = this;
    if (status === "IN_PROGRESS") return false;
    const isLet = choices(this.#seed, this.n, `again ${this.runs.length}`)() < 0.5;
    if (status !== "FAILED" && status !== "TIMED_OUT" && !isLet) return false;
    this.run();
    return true;
  }

  /** A draw for each time that it is asked about. */
  drawLook(): number {
    return choices(this.#seed, this.n, `look ${this.#looks++}`)();
  }

  stream(): string {
    const { last, status } = this;
    const until = status === "IN_PROGRESS" ? Date.now() : last.endsAt;
    const ready = Math.floor((until - last.beganAt) / chunkMs);
    const chunks = Array.from({ length: Math.max(0, ready - last.handed) }, () => ({ output: chunkText }));
    last.handed += chunks.length;
    return JSON.stringify({ status, stream: chunks });
  }

  /** What is true of it at this moment, in JSON. */
  describe(): string {
    const { id, status } = this;
    if (status !== "COMPLETED") return JSON.stringify({ id, status });
    const text = JSON.stringify({ id, status, output: this.#output() });
    return this.fate.leaks ? text.replace('"the key"', spelledKey(this.n)) : text;
  }

  #output(): object {
    const { costMicroUsd, saysCost } = this.last;
    const said = { ...(saysCost && { cost: costMicroUsd / 1e6 }), ...(this.fate.leaks && { note: "the key" }) };
    if (this.model === models.pictures) return { image_url: `${this.#mediaOrigin}/media/${this.n}.png`, ...said };
    if (this.model === models.text) return [{ choices: [{ tokens: [chunkText] }], ...said }];
    return this.fate.scenario === "large body" && this.n % 3 === 0 ? { pad: "x".repeat(largeBytes), ...said } : said;
  }
}

/** Undefined where nobody ever says it. */
export function trueCost(run: TakenRun): number | undefined {
  if (run.cancelled || run.ends === "TIMED_OUT") return undefined;
  if (run.ends === "FAILED") return 0;
  return run.saysCost ? run.costMicroUsd : undefined;
}
