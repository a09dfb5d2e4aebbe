// The embedded platform measured: the contract's own rates at once, and what a job costs when many others wait.
import { rates, rateWindowMs } from "../../src/contract/rates.ts";
import { Server } from "../support/serve.ts";
import { plantJobs } from "./plant.ts";
import { median, quantile, timed } from "./statistics.ts";

const endpoint = "bench";
const body = JSON.stringify({ input: { prompt: "a lighthouse" } });

export interface RateRow {
  readonly operation: "run" | "status";
  readonly asked: number;
  readonly errors: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** One endpoint carries 1000 runs and 2000 statuses in ten seconds, asked evenly, whatever the answers take. */
export async function measureRates(share = 1): Promise<RateRow[]> {
  const server = await Server.start({ settings: { ENDPOINTS: endpoint }, tmpfs: true });
  try {
    const { id } = (await (await submit(server)).json()) as { id: string };
    for (let n = 0; n < 100; n++) await (await server.platform(`${endpoint}/health`)).arrayBuffer();
    const windowMs = rateWindowMs * share;
    return await Promise.all([
      // One run was the first, so the window has room for one less.
      evenly("run", rates.run.requests * share - 1, windowMs, () => submit(server)),
      evenly("status", rates.status.requests * share, windowMs, () => server.platform(`${endpoint}/status/${id}`)),
    ]);
  } finally {
    await server.stop();
  }
}

const submit = (server: Server) => server.platform(`${endpoint}/run`, { method: "POST", body });

async function evenly(
  operation: RateRow["operation"],
  asked: number,
  windowMs: number,
  ask: () => Promise<Response>,
): Promise<RateRow> {
  const startedAt = performance.now();
  const times: number[] = [];
  let errors = 0;
  const one = async () => {
    const at = performance.now();
    const response = await ask().catch(() => undefined);
    await response?.arrayBuffer();
    times.push(performance.now() - at);
    if (response?.status !== 200) errors += 1;
  };
  const pending: Promise<void>[] = [];
  while (pending.length < asked) {
    const due = Math.min(asked, Math.ceil(((performance.now() - startedAt) / windowMs) * asked));
    while (pending.length < due) pending.push(one());
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  const seconds = (performance.now() - startedAt) / 1000;
  return { operation, asked, errors, seconds, p50Ms: median(times), p99Ms: quantile(times, 0.99) };
}

export interface GrowthRow {
  readonly waiting: number;
  readonly msPerJob: number;
  readonly cpuMsPerJob: number;
  /** Of the CPU, against the shortest queue, round by round: others use the machine, but not the process. */
  readonly cpuRatio: number;
}

/** Run, take, done and status of a job, while as many others wait. */
export async function measureGrowth(lengths: readonly number[], rounds: number, jobs: number): Promise<GrowthRow[]> {
  const servers: { waiting: number; server: Server; times: number[]; cpu: number[] }[] = [];
  try {
    for (const waiting of lengths) {
      const server = await Server.start({ settings: { ENDPOINTS: endpoint }, tmpfs: true });
      servers.push({ waiting, server, times: [], cpu: [] });
      await (await submit(server)).json();
      await plantJobs(server, waiting);
      await expectWaiting(server, waiting);
      await timed(() => workOff(server, jobs));
    }
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? servers : [...servers].reverse();
      for (const { server, times, cpu } of order) {
        const before = server.cpuMs();
        times.push((await timed(() => workOff(server, jobs))) / jobs);
        cpu.push((server.cpuMs() - before) / jobs);
      }
    }
    const shortest = servers[0]?.cpu ?? [];
    return servers.map(({ waiting, times, cpu }) => {
      const ratios = cpu.map((ms, round) => ms / (shortest[round] ?? Number.NaN));
      return { waiting, msPerJob: median(times), cpuMsPerJob: median(cpu), cpuRatio: median(ratios) };
    });
  } finally {
    await Promise.all(servers.map(({ server }) => server.stop()));
  }
}

async function expectWaiting(server: Server, waiting: number): Promise<void> {
  const health = (await (await server.platform(`${endpoint}/health`)).json()) as { jobs: { inQueue: number } };
  if (health.jobs.inQueue !== waiting) throw new Error(`${health.jobs.inQueue} jobs wait, not ${waiting}`);
}

/** One after the other. A job goes in for each that comes out, so that the queue keeps its length. */
async function workOff(server: Server, jobs: number): Promise<void> {
  for (let n = 0; n < jobs; n++) {
    await read(await submit(server));
    const { id } = await read(await server.platform(`${endpoint}/job-take/w1?gpu=none&job_in_progress=0`));
    const done = { method: "POST", body: '{"output":{"ok":true}}' };
    await read(await server.platform(`${endpoint}/job-done/w1/${id}?gpu=none&isStream=false`, done));
    const job = await read(await server.platform(`${endpoint}/status/${id}`));
    if (job.status !== "COMPLETED") throw new Error(`the job is ${job.status}`);
  }
}

async function read(response: Response): Promise<{ id: string; status: string }> {
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as { id: string; status: string };
}
