// The meters' rows and sums, held against what the upstream knows to be true.
import { amountsOf, type Job } from "../../src/gateway/quota/job.ts";
import { type Books, hasPruned, type Sums } from "./books.ts";
import { tokensOf } from "./hostile-chat.ts";
import { models, type TakenJob, trueCost } from "./taken-job.ts";

export interface Truth {
  readonly jobs: ReadonlyMap<string, TakenJob>;
  /** By a chat's number, whether its usage was said to the end. */
  readonly chats: ReadonlyMap<number, boolean>;
  /** Of a streamed job's number, how many chunks its user was given. */
  readonly handed: ReadonlyMap<number, number>;
  /** The admissions of the jobs whose users asked at the end, and were told it. */
  readonly ended: ReadonlySet<string>;
}

/** The state's sums are those of the rows that it has counted, at every moment, also while rows are open. */
export function auditSums({ counted, sums, pruned }: Books): string[] {
  const amounts = counted.map(amountsOf);
  const said = (kind: keyof Sums) => amounts.reduce((sum, amount) => sum + amount[kind], pruned[kind]);
  const off = (["known", "assumed", "reserved"] as const).filter((kind) => sums[kind] !== said(kind));
  return off.map((kind) => `a meter says ${sums[kind]} ${kind}, and its rows ${said(kind)}`);
}

/** What is wrong when all is over, in words. */
export function audit(books: readonly Books[], truth: Truth): string[] {
  const rows = books.flatMap((book) => book.rows);
  const byAdmission = new Map(rows.map((row) => [row.admission, row]));
  const chains = chainsOf(rows, byAdmission);
  return [
    ...books.flatMap(auditSums),
    ...rows.flatMap((row) => (row.endedAt === null ? [`${nameOf(row)} never ended in the books`] : [])),
    ...chains.flatMap((chain) => auditChain(chain)),
    ...auditTaken(truth, books, byAdmission, chains),
    ...auditChats(rows, truth),
  ];
}

/** For who must find out what became of it. */
export function nameOf({
  operation,
  admission,
  upstreamId,
  status,
  charged,
  assumed,
  boundAt,
  doubtedAt,
  successor,
}: Job): string {
  const known = boundAt !== null ? "bound" : doubtedAt !== null ? "in doubt" : "never bound";
  const said = `${status} at ${charged}${assumed ? " assumed" : ""}, ${known}`;
  return `${operation} ${admission} (${upstreamId}: ${said}${successor === null ? "" : `, then ${successor}`})`;
}
type Chain = readonly Job[];

/** A job and its retries, oldest first. What has joined another's pays nothing, and is no part of it. */
function chainsOf(rows: readonly Job[], byAdmission: ReadonlyMap<string, Job>): Chain[] {
  const chains = new Map<string, Job[]>();
  for (const row of rows) {
    const first = firstOf(row, byAdmission).admission;
    chains.set(first, [...(chains.get(first) ?? []), row]);
  }
  return [...chains.values()].map((chain) => chain.sort((one, other) => one.turn - other.turn));
}

function firstOf(row: Job, byAdmission: ReadonlyMap<string, Job>): Job {
  const before = row.retryOf === null ? undefined : byAdmission.get(row.retryOf);
  return before ? firstOf(before, byAdmission) : row;
}

/** One upstream job is charged once, however often it was retried. */
function auditChain(chain: Chain): string[] {
  const charged = chain.filter((row) => row.charged > 0);
  if (charged.length > 1) return [`one job is charged ${charged.length} times: ${chain.map(nameOf).join(", ")}`];
  const joined = charged.find(({ operation }) => operation === "joined");
  return joined ? [`${nameOf(joined)} has joined another's job and pays for it`] : [];
}

/** The notice's path names the admission, so a job is found in the books even where its answer was lost. */
function auditTaken(
  { jobs, handed, ended }: Truth,
  books: readonly Books[],
  byAdmission: ReadonlyMap<string, Job>,
  chains: readonly Chain[],
): string[] {
  const chainOf = new Map(chains.flatMap((chain) => chain.map((row) => [row.admission, chain] as const)));
  const faults: string[] = [];
  for (const job of jobs.values()) {
    const [meter = "", admission = ""] = job.hook.replace("/hooks/", "").split(".");
    const row = byAdmission.get(admission);
    const chain = row && chainOf.get(row.admission);
    if (!row || !chain) {
      const book = books.find((one) => one.meter === meter);
      if (!book || !hasPruned(book)) faults.push(`${job.id} was taken, and no meter knows its admission`);
    } else if (row.upstreamId !== null && row.upstreamId !== job.id) {
      faults.push(`${job.id} stands in the books as ${row.upstreamId}`);
    } else {
      faults.push(...auditCharge(job, chain, handed.get(job.n) ?? 0));
      if (chain.some((one) => ended.has(one.admission))) faults.push(...auditTold(job, chain));
    }
  }
  return faults;
}

function auditCharge(job: TakenJob, chain: Chain, chunks: number): string[] {
  const paying = chain.find((row) => row.charged > 0) ?? (chain.at(-1) as Job);
  const costs = job.runs.map(trueCost);
  const said = `${job.id} (${costs.join(", ")}) is ${paying.assumed ? "assumed" : "charged"} at ${paying.charged}`;
  const known = costs.filter((cost) => cost !== undefined);
  if (paying.assumed === 0) {
    // An earlier run's cost that nobody asked for in time is nobody's to know; what was stated is not undone.
    const last = costs.at(-1) ?? 0;
    const isOfOne = [...known, 0].includes(paying.charged) && (paying.charged >= last || job.runs.length > 1);
    return isOfOne ? [] : [said];
  }
  // A job whose relay died is known by its notice alone: what it cost is true, and yet assumed.
  const isPossible = [0, paying.reserved, ...known].includes(paying.charged);
  const isText = job.model === models.text && paying.charged > 0 && paying.charged <= paying.reserved;
  if (!isPossible && !isText) return [said];
  const wasHanded = chunks > 0 && job.runs.length === 1 && paying.status !== "FAILED";
  return wasHanded && paying.charged === 0 && costs[0] !== 0 ? [`${said}, and ${chunks} pieces were handed out`] : [];
}

/** Whose user was told the end and the cost: there is nothing to be assumed. */
function auditTold(job: TakenJob, chain: Chain): string[] {
  const cost = trueCost(job.last);
  const charged = chain.filter((row) => row.charged > 0);
  const isAssumed = charged.some(({ assumed }) => assumed === 1) || (charged.length === 0 && cost !== 0);
  if (cost === undefined || job.fate.leaks || !isAssumed) return [];
  return [
    `${job.id} cost ${cost}, its user was told so, and the books do not know it: ${chain.map(nameOf).join(", ")}`,
  ];
}

/** What granite takes for a token, in micro-USD. */
const tokenMicroUsd = 10;

/** The upstream says each chat's usage once, and no two alike. */
function auditChats(rows: readonly Job[], { chats }: Truth): string[] {
  const known = rows.filter(({ operation, assumed, charged }) => operation === "openai" && !assumed && charged > 0);
  const paid = new Map<number, number>();
  for (const { charged } of known) paid.set(charged, (paid.get(charged) ?? 0) + 1);
  const costs = new Set([...chats].flatMap(([n, says]) => (says ? [tokensOf(n) * tokenMicroUsd] : [])));
  return [...paid].flatMap(([charged, times]) => {
    if (!costs.has(charged)) return [`a chat is charged ${charged}, which none cost`];
    return times > 1 ? [`a chat that cost ${charged} is charged ${times} times`] : [];
  });
}
