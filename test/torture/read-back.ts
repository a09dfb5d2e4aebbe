// Days later the upstream has forgotten every job. Whose user was not told its end must find it kept.
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { fateOf } from "./chance.ts";
import type { Accepted, Clients } from "./clients.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

const atOnce = 16;
const answersWithinMs = 20_000;

export async function readBack(clients: Clients, receiver: WebhookReceiver, seed: number): Promise<string[]> {
  const wasTold = ({ handle }: Accepted) => {
    return clients.toldEnds.has(handle) || receiver.told.get(admissionOf(handle))?.isTaken;
  };
  const untold = clients.accepted.filter((job) => {
    return !job.mayBeGone && !fateOf(seed, job.n).leaks && !wasTold(job);
  });
  const answers = await inParallel(untold, atOnce, (job) => answerOf(clients, job));
  const faults = answers.flatMap((answer, at) => {
    return answer === "kept"
      ? []
      : [`nobody was told the end of ${untold[at]?.handle}, and it was answered with ${answer}`];
  });
  console.log(
    `${untold.length - faults.length} of ${untold.length} jobs that nobody was told the end of were read days later`,
  );
  return faults;
}

function answerOf(clients: Clients, job: Accepted): Promise<string> {
  const answered = eventually(`the answer about ${job.handle}`, answersWithinMs, async () => {
    const answer = await clients.status(job);
    if (answer?.status === 200) return /^IN_/.test(answer.state) ? answer.state : "kept";
    return answer?.status === 404 ? "404" : undefined;
  });
  return answered.catch(String);
}

/** A handle is `<ref>.<admission>.<mac>`. */
export const admissionOf = (handle: string) => handle.split(".").at(-2) ?? "";
