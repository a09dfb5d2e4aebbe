// The disk of the gateway's objects is full for a while: nothing they write is kept. Then there is room again, and they are to
// go on by themselves: the process is the same.
import type { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { readBooks } from "./books.ts";
import { pause } from "./pace.ts";
import type { Weather } from "./weather.ts";

/** The runtime gives up on an alarm that failed for two minutes: a run of twenty minutes sees that, a shorter one less. */
const full = { lastsMs: 3 * 60_000, ofRun: 0.15 };
const wakesWithinMs = 30_000;
/** A look reads the books of all meters, in the process that is the upstream and the stores as well: it holds them up. */
const betweenLooksMs = 2_000;
/** What an alarm owed so long ago was forgotten; what it owed longer ago was written by a clock that was wrong. */
const overdue = { fromMs: 10 * 60_000, toMs: 15_000 };

export async function fillDisk(server: Server, runMs: number, weather: Weather): Promise<string[]> {
  weather.beginTrouble("the disk is full", "objects");
  server.fillDisk(true);
  await pause(Math.min(full.lastsMs, runMs * full.ofRun));
  server.fillDisk(false);
  weather.endTrouble("objects");
  try {
    await eventually("the meters' waking after the disk was full", wakesWithinMs, async () => {
      await pause(betweenLooksMs);
      const late = overdueJobs(server.disk);
      if (late > 0) throw new Error(`${late} jobs are overdue`);
      return true;
    });
    return [];
  } catch (error) {
    return [String(error)];
  }
}

function overdueJobs(disk: string): number {
  const now = Date.now();
  const open = readBooks(disk, { isLive: true })
    .flatMap(({ rows }) => rows)
    .filter(({ endedAt }) => endedAt === null);
  return open.filter(({ dueAt }) => dueAt > now - overdue.fromMs && dueAt < now - overdue.toMs).length;
}
