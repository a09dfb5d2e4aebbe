// A job whose client wants to be told of its end, at a receiver that has its moods.
import { choices } from "../chance.ts";
import type { Turn } from "../clients.ts";
import { moods } from "../webhook-receiver.ts";
import { submit } from "./job.ts";

export async function webhook(turn: Turn): Promise<void> {
  const { n, seed, clients } = turn;
  const next = choices(seed, n, "webhook");
  const mood = moods[Math.floor(next() * moods.length)];
  clients.count("webhook");
  const job = await submit(turn, next() < 0.7 ? "run" : "runsync", { webhook: `${clients.receiver}/${mood}/${n}` });
  if (job && next() < 0.5) await clients.ended(job, 1_500);
}
