// The same picture, asked for by several clients of one owner and of several: one leads, others join or come later; then its
// link is read, and deleted.
import { choices, firstPicture } from "../chance.ts";
import type { Accepted, Answer, Turn } from "../clients.ts";
import { pictureOf } from "../hostile-media.ts";
import { pause } from "../pace.ts";
import { models } from "../taken-job.ts";

/** So many numbers that follow each other share a few pictures. */
const near = { numbers: 60, pictures: 3 };
const endsWithinMs = 3_000;

export async function picture(turn: Turn): Promise<void> {
  const { n, seed } = turn;
  const next = choices(seed, n, "pictures");
  const which = Math.floor(n / near.numbers) * near.pictures + Math.floor(next() * near.pictures);
  const first = ask(turn, which, next() < 0.5 ? "run" : "runsync");
  if (next() < 0.5) await pause(next() * 100);
  const second = ask(turn, which, next() < 0.5 ? "run" : "runsync");
  const jobs = (await Promise.all([first, second])).filter((job) => job !== undefined);
  const leaver = next() < 0.15 ? jobs[0] : undefined;
  if (leaver) await leave(turn, leaver);
  let link: string | undefined;
  for (const job of jobs) link = (await follow(turn, job, which, job === leaver)) ?? link;
  for (const operation of ["run", "runsync"] as const) {
    const later = await ask(turn, which, operation);
    link = (later && (await follow(turn, later, which, false))) ?? link;
  }
  if (link !== undefined && next() < 0.9) await remove(turn, link, jobs);
}

async function ask({ fate: { user }, seed, clients }: Turn, which: number, operation: "run" | "runsync") {
  clients.count("picture");
  const input = { prompt: `picture ${which} of ${seed}`, seed: which, size: "512*512" };
  const path = `/v2/${models.pictures}/${operation}${operation === "runsync" ? "?wait=2000" : ""}`;
  const answer = await clients.ask(user, "POST", path, { body: JSON.stringify({ input }) });
  const cache = answer?.headers.get("X-Cache");
  if (cache === "JOINED") clients.count("picture joined");
  if (cache === "HIT") clients.count("picture from the cache");
  // Another client of the same owner may delete it at any time.
  return clients.accept(answer, { user, model: models.pictures, n: firstPicture + which }, cache === "HIT");
}

async function leave({ clients }: Turn, { user, handle }: Accepted): Promise<void> {
  clients.count("cancel");
  await clients.ask(user, "POST", `/v2/${models.pictures}/cancel/${handle}`);
}

/** Reads what the job's link leads to; answers with the link's path. */
async function follow(turn: Turn, job: Accepted, which: number, hasLeft: boolean): Promise<string | undefined> {
  const { clients, seed } = turn;
  for (const until = Date.now() + endsWithinMs; Date.now() < until; await pause(60)) {
    clients.count("status");
    const answer = await clients.ask(job.user, "GET", `/v2/${job.model}/status/${job.handle}`);
    const { status, output } = (answer?.body ?? {}) as { status?: string; output?: { image_url?: string } };
    if (answer?.status === 404) return undefined;
    if (answer?.status !== 200 || status?.startsWith("IN_")) continue;
    if (status === "CANCELLED" && !hasLeft) clients.faults.push(`${job.handle} is CANCELLED, and its user stayed`);
    const link = output?.image_url;
    if (link === undefined) return undefined;
    const { pathname } = new URL(link);
    clients.count("picture read");
    const read = await clients.ask(job.user, "GET", pathname, { mayBreak: true });
    if (read?.status === 200 && !isWhole(read, seed, which)) clients.faults.push(`${pathname} is another file`);
    return pathname;
  }
  return undefined;
}

/** What broke off never came as an answer. */
function isWhole({ bytes }: Answer, seed: number, which: number): boolean {
  return pictureOf(seed, firstPicture + which).equals(bytes);
}

async function remove({ fate: { user }, clients }: Turn, path: string, jobs: readonly Accepted[]): Promise<void> {
  for (const job of jobs) job.mayBeGone = true;
  clients.count("picture deleted");
  const removed = await clients.ask(user, "DELETE", path);
  if (removed?.status !== 204) return;
  const after = await clients.ask(user, "GET", path, { mayBreak: true });
  if (after?.status === 200) clients.faults.push(`${path} was deleted, and is there`);
}
