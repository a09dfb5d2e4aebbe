// What goes wrong around the gateway while clients call: it is killed, its upstream goes away, its stores fail.
import type { Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { auditSums } from "./audit.ts";
import { readBooks } from "./books.ts";
import { chance, picker, users } from "./chance.ts";
import type { Clients } from "./clients.ts";
import type { HostileUpstream } from "./hostile-upstream.ts";
import { pause } from "./pace.ts";
import type { StandIn, Trouble } from "./stand-in.ts";
import { models } from "./taken-job.ts";
import { closesWithinMs, type Weather } from "./weather.ts";

/** The others are kills. */
const absentEvery = 6;
const absence = "the upstream refuses";
/** Somebody else's connection may have its port for a moment. */
const restarts = 20;
const kinds: readonly Trouble[] = ["fails", "refuses", "is slow"];

interface Surroundings {
  readonly seed: number;
  readonly server: Server;
  readonly upstream: HostileUpstream;
  readonly stores: readonly StandIn[];
  readonly clients: Clients;
  readonly weather: Weather;
}

/** Until then; answers with what should not have been. */
export async function trouble(around: Surroundings, until: number): Promise<string[]> {
  const faults: string[] = [];
  const stores = around.stores.map((store, at) => troubleStore(around, store, at, until));
  await Promise.all([troubleProcesses(around, until, faults), ...stores]);
  const { troubles, down } = around.weather;
  if (troubles.has(absence) && down === 0) faults.push("the upstream was away, and no circuit opened");
  return faults;
}

/** One after the other: a kill would close each circuit that the upstream's absence opened. */
async function troubleProcesses(around: Surroundings, until: number, faults: string[]): Promise<void> {
  const { seed, server, weather } = around;
  const next = chance(seed, -2);
  for (let turn = 1; ; turn++) {
    await pause(2000 + next() * 3000);
    if (Date.now() >= until) return;
    if (turn % absentEvery === 2) {
      await leave(around, 2000 + next() * 2000, faults);
      continue;
    }
    weather.beginTrouble("a kill");
    weather.killedAt = Number.POSITIVE_INFINITY;
    await server.kill9();
    weather.up = restart(server, faults);
    await weather.up;
    weather.killedAt = Date.now();
    weather.endTrouble();
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
  weather.beginTrouble(absence);
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
  weather.endTrouble();
}

async function troubleStore({ seed, weather }: Surroundings, store: StandIn, at: number, until: number): Promise<void> {
  const next = chance(seed, -10 - at);
  const pick = picker(next);
  for (;;) {
    await pause(3000 + next() * 6000);
    if (Date.now() >= until) return;
    const kind = pick(kinds);
    weather.beginTrouble(`${store.store} ${kind}`);
    await store.haveTrouble(kind);
    await pause(1000 + next() * 3000);
    await store.haveTrouble(undefined);
    weather.endTrouble();
  }
}
