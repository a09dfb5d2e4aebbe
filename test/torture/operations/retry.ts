// A job that is run again, whatever became of it, and again: one upstream job all the while.
import { choices, isCancelled } from "../chance.ts";
import type { Accepted, Turn } from "../clients.ts";
import type { Operation } from "../counted.ts";
import { models } from "../taken-job.ts";
import { submit } from "./job.ts";

const mostRetries = 4;
const endsWithinMs = 2_000;

export async function retry(turn: Turn): Promise<void> {
  const next = choices(turn.seed, turn.n, "retry");
  const job = await submit(turn, "run", {});
  if (!job) return;
  for (let retries = 0; retries < mostRetries; retries++) {
    if (isCancelled(turn.fate)) await cancel(turn, job);
    const state = await turn.clients.ended(job, endsWithinMs);
    if (state === undefined) return;
    turn.clients.count(`retry of ${state}` as Operation);
    await again(turn, job);
    // Nobody waits for the first one's answer: it runs again already, or it does not.
    if (next() < 0.2) await again(turn, job);
  }
}

async function again({ clients }: Turn, { user, handle }: Accepted): Promise<void> {
  await clients.ask(user, "POST", `/v2/${models.jobs}/retry/${handle}`);
}

async function cancel({ clients }: Turn, { user, handle }: Accepted): Promise<void> {
  clients.count("cancel");
  await clients.ask(user, "POST", `/v2/${models.jobs}/cancel/${handle}`);
}
