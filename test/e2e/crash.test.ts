// A process killed in the middle of some hundred jobs: every accepted one is found afterwards, and ends.
import { afterAll, beforeAll, expect, it } from "vitest";
import { workerEnvironment } from "../../src/cli/worker-env.ts";
import { amount } from "../support/amount.ts";
import { Server } from "../support/serve.ts";
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { ScriptedWorker } from "../support/serve-worker.ts";
import { testSettings } from "../support/settings.ts";

const attached = "attached";
const sampled = "black-forest-labs-flux-1-schnell";
const jobs = amount(500, 100);
/** A hand-over that was cut is noticed after three pings; two cores that others use need their time. */
const endsWithinMs = 75_000;

interface Accepted {
  readonly id: string;
  readonly endpoint: string;
}
interface Ended {
  readonly id: string;
  readonly status: string;
  readonly retries?: number;
}

let server: Server;
let workers: ScriptedWorker[];

beforeAll(async () => {
  server = await Server.start({ settings: { ENDPOINTS: attached, SAMPLE_DELAY_MS: "20" } });
  workers = ["one", "two", "three"].map((worker) => {
    const environment = { endpoint: attached, url: server.url, key: testSettings.PLATFORM_API_KEY, worker };
    return new ScriptedWorker(workerEnvironment(environment), ({ input }) => ({ output: { saw: input["n"] } })).start();
  });
});

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.leave()));
  await server.stop();
});

it("loses no accepted job, and runs none twice without counting a retry", { timeout: 120_000 }, async () => {
  const accepted: Accepted[] = [];
  let killed: Promise<void> | undefined;
  await inParallel([...Array(jobs).keys()], 16, async (n) => {
    const endpoint = n % 2 === 0 ? attached : sampled;
    const job = await submit(endpoint, n);
    if (job) accepted.push({ id: job, endpoint });
    if (accepted.length >= jobs / 2) killed ??= server.kill9().then(() => server.restart());
    await killed;
  });
  expect(killed).toBeDefined();
  // Submissions that were under way when the process died may be refused, never half accepted.
  expect(accepted.length).toBeGreaterThan(jobs - 40);

  const ended = await untilEnded(accepted);
  expect(ended.map(({ id }) => id).sort()).toEqual(accepted.map(({ id }) => id).sort());
  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(["COMPLETED"]));

  const executions = new Map<string, number>();
  for (const id of workers.flatMap(({ executed }) => executed)) executions.set(id, (executions.get(id) ?? 0) + 1);
  const uncounted = ended.filter(({ id, retries = 0 }) => (executions.get(id) ?? 0) > 1 + retries);
  expect(uncounted).toEqual([]);
});

/** The job's id, or nothing where the server died meanwhile. */
async function submit(endpoint: string, n: number): Promise<string | undefined> {
  const body = JSON.stringify({ input: { n, prompt: `picture ${n}`, width: 256, height: 256 } });
  const response = await server.platform(`${endpoint}/run`, { method: "POST", body }).catch(() => undefined);
  if (response?.status !== 200) return undefined;
  const job = (await response.json().catch(() => undefined)) as { id: string } | undefined;
  return job?.id;
}

async function untilEnded(accepted: readonly Accepted[]): Promise<Ended[]> {
  const ended: Ended[] = [];
  let pending = accepted;
  await eventually("the end of every accepted job", endsWithinMs, async () => {
    const seen = await inParallel(pending, 8, async ({ id, endpoint }) => {
      const response = await server.platform(`${endpoint}/status/${id}`);
      if (response.status === 404) throw new Error(`the accepted job ${id} is gone`);
      const job = (await response.json()) as Ended;
      return response.status === 200 && !/^IN_/.test(job.status) ? job : undefined;
    });
    ended.push(...seen.filter((job) => job !== undefined));
    pending = pending.filter((_, index) => seen[index] === undefined);
    return pending.length === 0;
  });
  return ended;
}
