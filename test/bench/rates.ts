// The embedded platform measured: the contract's own rates, all at once.
import { rates, rateWindowMs } from "../../src/contract/rates.ts";
import { Server } from "../support/serve.ts";
import { median, quantile } from "./statistics.ts";

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
  const server = await Server.start({ settings: { ENDPOINTS: endpoint } });
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
