// Days later the upstream has forgotten every job. Whose user was not told its end must find it kept.
import type { Job } from "../../src/gateway/quota/job.ts";
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { nameOf } from "./audit.ts";
import { fateOf } from "./chance.ts";
import type { Accepted, Clients } from "./clients.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

const atOnce = 16;
const answersWithinMs = 20_000;
const gone = "404";

/** Answers with how each was answered that nobody was told the end of. */
export async function readBack(
  clients: Clients,
  receiver: WebhookReceiver,
  seed: number,
): Promise<ReadonlyMap<string, string>> {
  const wasTold = ({ handle }: Accepted) => {
    return clients.toldEnds.has(handle) || receiver.told.get(admissionOf(handle))?.isTaken;
  };
  const untold = clients.accepted.filter((job) => {
    return !job.mayBeGone && !fateOf(seed, job.n).leaks && !wasTold(job);
  });
  const answers = new Map<string, string>();
  await inParallel(untold, atOnce, async (job) => {
    answers.set(job.handle, await answerOf(clients, job));
  });
  return answers;
}

/** With what the books say of those that are lost. */
export function auditReadBack(answers: ReadonlyMap<string, string>, rows: readonly Job[]): string[] {
  const byAdmission = new Map(rows.map((row) => [row.admission, row]));
  const lost = [...answers].filter(([, answer]) => answer === gone || answer.startsWith("IN_"));
  console.log(
    `${answers.size - lost.length} of ${answers.size} jobs that nobody was told the end of were read days later`,
  );
  return lost.map(([handle, answer]) => {
    const row = byAdmission.get(admissionOf(handle));
    const name = row ? nameOf(row) : `${handle}, of which the books know nothing,`;
    return `nobody was told the end of ${name}, and days later it is answered with ${answer}`;
  });
}

async function answerOf(clients: Clients, job: Accepted): Promise<string> {
  const answered = eventually(`the answer about ${job.handle}`, answersWithinMs, async () => {
    const answer = await clients.status(job);
    if (answer?.status === 200) return answer.state;
    return answer?.status === 404 ? gone : undefined;
  });
  return answered.catch(() => gone);
}

/** A handle is `<ref>.<admission>.<mac>`. */
export const admissionOf = (handle: string) => handle.split(".").at(-2) ?? "";
