// Days later the upstream has forgotten every job. Whose user was not told its end must find it kept.
import type { Job } from "../../src/gateway/quota/job.ts";
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { nameOf } from "./audit.ts";
import { fateOf } from "./chance.ts";
import type { Accepted, Clients } from "./clients.ts";
import { history } from "./history.ts";
import type { TakenJob } from "./taken-job.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

const atOnce = 16;
const answersWithinMs = 20_000;
const gone = "404";
/** Each has some hundred lines. */
const mostHistories = 5;

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

interface ReadBack {
  readonly handle: string;
  readonly answer: string;
  /** As the upstream knows it; undefined where it never had the job. */
  readonly truth: TakenJob | undefined;
  /** Of the job and its retries. */
  readonly rows: readonly Job[];
}

/** With what the books say of those that are lost, or answered with what is not true. */
export function auditReadBack(
  answers: ReadonlyMap<string, string>,
  rows: readonly Job[],
  taken: ReadonlyMap<string, TakenJob>,
): string[] {
  const read = [...answers].map(([handle, answer]): ReadBack => {
    const first = admissionOf(handle);
    const chain = rows.filter(({ admission, retryOf }) => admission === first || retryOf === first);
    return { handle, answer, truth: taken.get(upstreamIdOf(handle)), rows: chain };
  });
  const lost = read.filter((one) => !isTrue(one));
  console.log(
    `${read.length - lost.length} of ${read.length} jobs that nobody was told the end of were read days later`,
  );
  for (const one of lost.slice(0, mostHistories)) tellHistory(one);
  return lost.map(({ handle, answer, truth, rows: [row] }) => {
    const name = row ? nameOf(row) : `${handle}, of which the books know nothing,`;
    return `nobody was told ${truth?.status ?? "the end"} of ${name}, and days later it is answered with ${answer}`;
  });
}

/**
 * Where the upstream was away when a job's time was over, or its id was lost with the process, its end was assumed; of what
 * has joined another's the books mark nothing, since it pays nothing. Of a retry that came to nothing the result of an
 * earlier run is as good.
 */
function isTrue({ answer, truth, rows }: ReadBack): boolean {
  if (answer === gone || answer.startsWith("IN_")) return false;
  if (truth === undefined || answer === truth.status) return true;
  const hasMade = answer === "COMPLETED" && truth.runs.some(({ ends, cancelled }) => ends === answer && !cancelled);
  const mayBeAssumed = ({ assumed, operation }: Job) => assumed === 1 || operation === "joined";
  return hasMade || rows.some((row) => mayBeAssumed(row) && row.status === answer);
}

/** All that is known of a job and its retries. */
function tellHistory({ handle, rows }: ReadBack): void {
  for (const row of rows) console.error(`ROW ${JSON.stringify(row)}`);
  const names = [upstreamIdOf(handle), admissionOf(handle), ...rows.map(({ admission }) => admission)];
  for (const entry of history.of(names)) console.error(`  ${entry}`);
}

async function answerOf(clients: Clients, job: Accepted): Promise<string> {
  const answered = eventually(`the answer about ${job.handle}`, answersWithinMs, async () => {
    const answer = await clients.status(job);
    if (answer?.status === 200) return answer.state;
    return answer?.status === 404 ? gone : undefined;
  });
  return answered.catch(() => gone);
}

const upstreamIdOf = (handle: string) => (handle.split(".").at(-3) ?? "").replace(/^sync-/, "");

/** A handle is `<ref>.<admission>.<mac>`. */
export const admissionOf = (handle: string) => handle.split(".").at(-2) ?? "";
