// A worker that speaks the protocol as the real service's own workers do, from the same environment variables.

export interface TakenJob {
  readonly id: string;
  readonly input: Record<string, unknown>;
  readonly [other: string]: unknown;
}
export type Handler = (job: TakenJob, worker: ScriptedWorker) => unknown;

const pauseMs = 50;
/** The real workers try a result three times; this one goes on for as long as a restart may take. */
const resultTries = 60;

export class ScriptedWorker {
  /** Every hand-over, in order: what was executed, and how often. */
  readonly executed: string[] = [];
  readonly name: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #handle: Handler;
  readonly #leaving = new AbortController();
  readonly #inHand = new Set<string>();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(environment: Readonly<Record<string, string>>, handle: Handler) {
    this.#environment = environment;
    this.#handle = handle;
    this.name = this.#of("RUNPOD_POD_ID");
  }

  start(): this {
    this.#loops = Promise.all([this.#takeJobs(), this.#keepPinging()]);
    return this;
  }

  /** In the middle of whatever it does. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#loops;
  }

  async #takeJobs(): Promise<void> {
    while (!this.#leaving.signal.aborted) {
      const job = await this.take().catch(() => undefined);
      if (job) await this.#run(job);
      else await this.#pause();
    }
  }

  /** One long poll. */
  async take(): Promise<TakenJob | undefined> {
    const url = this.#of("RUNPOD_WEBHOOK_GET_JOB").replace("$ID", this.name);
    const response = await this.#send(`${url}&job_in_progress=${this.#inHand.size > 0 ? 1 : 0}`);
    if (response.status === 204) return undefined;
    if (response.status !== 200) throw new Error(`job-take answered ${response.status}`);
    if (response.headers.get("content-type") !== "application/json") throw new Error("a job must be application/json");
    const job = (await response.json()) as TakenJob;
    this.#inHand.add(job.id);
    return job;
  }

  async #run(job: TakenJob): Promise<void> {
    this.executed.push(job.id);
    const result = await this.#handle(job, this);
    for (let tries = 1; tries <= resultTries && !this.#leaving.signal.aborted; tries++) {
      const status = await this.done(job.id, result).catch(() => 0);
      if (status > 0) return;
      await this.#pause();
    }
  }

  /** The status of the answer. The body is JSON, whatever its type says. */
  async done(job: string, result: unknown, isStream = false): Promise<number> {
    const url = this.#resultUrl("RUNPOD_WEBHOOK_POST_OUTPUT", job);
    const status = await this.#post(`${url}&isStream=${isStream}`, result);
    this.#inHand.delete(job);
    return status;
  }

  async progress(job: string, output: unknown): Promise<number> {
    const url = this.#resultUrl("RUNPOD_WEBHOOK_POST_OUTPUT", job);
    return this.#post(`${url}&isStream=false`, { status: "IN_PROGRESS", output });
  }

  async emit(job: string, output: unknown): Promise<number> {
    return this.#post(`${this.#resultUrl("RUNPOD_WEBHOOK_POST_STREAM", job)}&isStream=true`, { output });
  }

  async ping(): Promise<number> {
    const url = new URL(this.#of("RUNPOD_WEBHOOK_PING").replace("$RUNPOD_POD_ID", this.name));
    if (this.#inHand.size > 0) url.searchParams.set("job_id", [...this.#inHand].join(","));
    url.searchParams.set("runpod_version", "1.7.0");
    return (await this.#send(url.href)).status;
  }

  /** What it is told to stop. */
  async stops(): Promise<string[]> {
    const take = this.#of("RUNPOD_WEBHOOK_GET_JOB").replace("$ID", this.name);
    const response = await this.#send(take.replace("/job-take/", "/job-stop/"));
    if (response.status !== 200) return [];
    return ((await response.json()) as { jobsToStop: string[] }).jobsToStop;
  }

  async #keepPinging(): Promise<void> {
    while (!this.#leaving.signal.aborted) {
      await this.ping().catch(() => 0);
      await this.#pause(Number(this.#of("RUNPOD_PING_INTERVAL")));
    }
  }

  #resultUrl(name: string, job: string): string {
    return this.#of(name).replace("$RUNPOD_POD_ID", this.name).replace("$ID", job);
  }

  async #post(url: string, result: unknown): Promise<number> {
    const headers = { charset: "utf-8", "Content-Type": "application/x-www-form-urlencoded" };
    const body = typeof result === "string" || result instanceof Uint8Array ? result : JSON.stringify(result);
    const response = await this.#send(url, { method: "POST", headers, body: body as BodyInit });
    await response.arrayBuffer();
    return response.status;
  }

  #send(url: string, init: RequestInit = {}): Promise<Response> {
    // A connection that rested while megabytes were compared may be closed just as it is used again.
    const headers = { ...init.headers, Authorization: this.#of("RUNPOD_AI_API_KEY"), Connection: "close" };
    return fetch(url, { ...init, headers, signal: this.#leaving.signal });
  }

  #pause(ms = pauseMs): Promise<void> {
    const { signal } = this.#leaving;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
    });
  }

  #of(name: string): string {
    const value = this.#environment[name];
    if (value === undefined) throw new Error(`the worker's environment lacks ${name}`);
    return value;
  }
}
