// A job as most are: submitted, polled, left or cancelled on the way.
import { choices } from "../chance.ts";
import type { Turn } from "../clients.ts";
import { pause } from "../pace.ts";
import { models } from "../taken-job.ts";

export async function job(turn: Turn): Promise<void> {
  const { n, fate, seed, clients } = turn;
  const next = choices(seed, n, "job");
  const operation = next() < 0.65 ? "run" : "runsync";
  const accepted = await submit(turn, operation, {});
  if (!accepted) return;
  if (next() < 0.25) {
    clients.count("cancel");
    await clients.ask(fate.user, "POST", `/v2/${models.jobs}/cancel/${accepted.handle}`);
  }
  for (let polls = 0; polls < 2; polls++) {
    await pause(50);
    await clients.status(accepted);
  }
}

/** The least that the contract lets a job live: what nobody follows is soon looked after. */
const policy = { ttl: 10_000 };

export async function submit({ n, fate, clients }: Turn, operation: "run" | "runsync", more: object) {
  const { user, idempotent, leavesAfterMs } = fate;
  clients.count(operation);
  const headers: Record<string, string> = idempotent ? { "Idempotency-Key": `key-${n}` } : {};
  const signal = leavesAfterMs === undefined ? undefined : AbortSignal.timeout(leavesAfterMs);
  const init = { body: JSON.stringify({ input: { n }, policy, ...more }), headers, ...(signal && { signal }) };
  const path = `/v2/${models.jobs}/${operation}${operation === "runsync" ? "?wait=2000" : ""}`;
  return clients.accept(await clients.ask(user, "POST", path, init), { user, model: models.jobs, n });
}
