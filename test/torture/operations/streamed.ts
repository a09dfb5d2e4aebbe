// Text for nothing: a job's output is streamed, and then the job is cancelled, or left to run into its end.
import { choices } from "../chance.ts";
import type { Turn } from "../clients.ts";
import { pause } from "../pace.ts";
import { models } from "../taken-job.ts";
import { submit } from "./job.ts";

export async function streamed(turn: Turn): Promise<void> {
  const { n, fate, seed, clients } = turn;
  const next = choices(seed, n, "streamed");
  const isText = next() < 0.5;
  const job = isText ? await submitText(turn) : await submit(turn, "run", {});
  if (!job) return;
  for (let looks = 0; looks < 2; looks++) {
    await pause(100 + next() * 150);
    clients.count("stream");
    const answer = await clients.ask(fate.user, "GET", `/v2/${job.model}/stream/${job.handle}?wait=1000`);
    const chunks = answer?.status === 200 ? (answer.body["stream"] as unknown[]).length : 0;
    clients.handed.set(n, (clients.handed.get(n) ?? 0) + chunks);
  }
  if (next() < 0.15) return;
  if ((clients.handed.get(n) ?? 0) > 0) clients.count("cancel after output");
  await clients.ask(fate.user, "POST", `/v2/${job.model}/cancel/${job.handle}`);
  await clients.status(job);
}

/** To a model that is paid by its tokens. */
async function submitText({ n, fate: { user }, clients }: Turn) {
  clients.count("run");
  const input = { messages: [{ role: "user", content: "streamed" }], sampling_params: { seed: n, max_tokens: 400 } };
  const body = JSON.stringify({ input, policy: { ttl: 10_000 } });
  const answer = await clients.ask(user, "POST", `/v2/${models.text}/run`, { body });
  return clients.accept(answer, { user, model: models.text, n });
}
