// What goes wrong around the gateway while clients call: it is killed, its disk is full, its upstream goes away; and beside
// that the disturbances.
import type { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { auditSums } from "./audit.ts";
import { readBooks } from "./books.ts";
import { chance, users } from "./chance.ts";
import type { Clients } from "./clients.ts";
import { type Disturbance, disturb, drawsOf } from "./disturbance.ts";
import { fillDisk } from "./full-disk.ts";
import type { HostileUpstream } from "./hostile-upstream.ts";
import { pause } from "./pace.ts";
import { models } from "./taken-job.ts";
import { closesWithinMs, type Weather } from "./weather.ts";

/** What happens to the process or to its upstream, one after the other: by these names they are left out. */
export const processTroubles = ["kills", "absence", "full disk"] as const;
/** The others are kills. */
const absentEvery = 6;
const absence = "the upstream refuses";
/** Somebody else's connection may have its port for a moment. */
const restarts = 20;
/** When in a run its disk is full, once. */
const fullWithin = { from: 0.2, to: 0.6 };

interface Surroundings {
  readonly seed: number;
  /** What does not come about, to see what the rest does alone. */
  readonly without: ReadonlySet<string>;
  readonly server: Server;
  readonly upstream: HostileUpstream;
  readonly disturbances: readonly Disturbance[];
  readonly clients: Clients;
  readonly weather: Weather;
}

/** Until then; answers with what should not have been. */
export async function trouble(around: Surroundings, until: number): Promise<string[]> {
  const faults: string[] = [];
  const disturbed = around.disturbances.map((disturbance, at) => {
    const isLeftOut = around.without.has(disturbance.name);
    return isLeftOut ? undefined : disturb(disturbance, drawsOf(around.seed, at), around.weather, until);
  });
  await Promise.all([troubleProcesses(around, until, faults), ...disturbed]);
  const { troubles, down } = around.weather;
  if (troubles.has(absence) && down === 0) faults.push("the upstream was away, and no circuit opened");
  return faults;
}

/** One after the other: a kill would close each circuit that the upstream's absence opened. */
async function troubleProcesses(around: Surroundings, until: number, faults: string[]): Promise<void> {
  const { seed, server, weather } = around;
  const next = chance(seed, -2);
  const runMs = until - Date.now();
  let fullAt = Date.now() + runMs * (fullWithin.from + next() * (fullWithin.to - fullWithin.from));
  for (let turn = 1; ; turn++) {
    await pause(2000 + next() * 3000);
    if (Date.now() >= until) return;
    if (Date.now() >= fullAt && !around.without.has("full disk")) {
      fullAt = Number.POSITIVE_INFINITY;
      faults.push(...(await fillDisk(server, runMs, weather)));
      continue;
    }
    if (turn % absentEvery === 2 && !around.without.has("absence")) {
      await leave(around, 2000 + next() * 2000, faults);
      continue;
    }
    if (around.without.has("kills")) continue;
    weather.beginTrouble("a kill", "the process");
    weather.killedAt = Number.POSITIVE_INFINITY;
    await server.kill9();
    weather.up = restart(server, faults);
    await weather.up;
    weather.killedAt = Date.now();
    weather.endTrouble("the process");
  }
}

async function restart(server: Server, faults: string[]): Promise<void> {
  faults.push(...readBooks(server.disk).flatMap(auditSums));
  for (let left = restarts; ; left--) {
    try {
      return await server.restart();
    } catch (error) {
      if (left === 0) throw error;
      await pause(100);
    }
  }
}

/** The upstream is away, and back: its circuits open meanwhile, and must close again. */
async function leave({ upstream, clients, weather }: Surroundings, ms: number, faults: string[]): Promise<void> {
  weather.beginTrouble(absence, "the upstream");
  weather.awayUntil = Date.now() + ms;
  await upstream.close();
  await pause(ms);
  await upstream.listen();
  weather.awayUntil = Date.now();
  for (const model of Object.values(models)) {
    await eventually(`the closing of ${model}'s circuit`, closesWithinMs, async () => {
      const answer = await clients.ask(users[0] as string, "GET", `/v2/${model}/health`);
      return answer?.status === 200;
    }).catch((error: unknown) => faults.push(String(error)));
  }
  weather.endTrouble("the upstream");
}
