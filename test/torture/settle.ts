// After the clients have gone: half of the accepted jobs are followed to their ends, and the meters are given the time to see to
// the rest.
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { choices, fateOf } from "./chance.ts";
import type { Accepted, Clients } from "./clients.ts";
import { pause } from "./pace.ts";
import { admissionOf } from "./read-back.ts";

const endsWithinMs = 60_000;
const atOnce = 16;
const restMs = 2_000;

export interface Followed {
  /** What was accepted, and is known no more. */
  readonly lost: string[];
  /** The admissions of the jobs whose ends were told. */
  readonly ended: ReadonlySet<string>;
}

export async function followAll(clients: Clients, seed: number): Promise<Followed> {
  const lost: string[] = [];
  const ended = new Set<string>();
  const followed = clients.accepted.filter(({ n }) => choices(seed, n, "followed")() < 0.5);
  await inParallel(followed, atOnce, async (job) => {
    const end = await endOf(clients, job, fateOf(seed, job.n).leaks).catch(() => undefined);
    const isGone = end === 404 && job.mayBeGone;
    if (end !== 200 && end !== 502 && !isGone) lost.push(`the accepted job ${job.handle} was answered with ${end}`);
    if (end === 200) ended.add(admissionOf(job.handle));
  });
  // The meters are told of the last ends beside the answers.
  await pause(restMs);
  return { lost, ended };
}

/** What has the key in it is told to nobody: that the job is known is all that can be asked. */
function endOf(clients: Clients, job: Accepted, leaks: boolean): Promise<number> {
  return eventually(`the end of ${job.handle}`, endsWithinMs, async () => {
    const answer = await clients.status(job);
    if (!answer) return undefined;
    if (leaks && answer.status === 502) return answer.status;
    return answer.status === 404 || (answer.status === 200 && !/^IN_/.test(answer.state)) ? answer.status : undefined;
  });
}
