// `npm run torture [-- --seconds 300 --seed 7]`: the gateway over real processes, with everything that can go wrong going wrong.
import { parseArgs } from "node:util";
import { type ServeOptions, Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { audit } from "./audit.ts";
import { auditEmptyBucket, auditUploads } from "./audit-uploads.ts";
import { auditOwed, auditWebhooks } from "./audit-webhooks.ts";
import { type Books, owedWebhooks, readBooks } from "./books.ts";
import { users } from "./chance.ts";
import { Clients } from "./clients.ts";
import { add, tell, tooSeldom } from "./counted.ts";
import type { Disturbance } from "./disturbance.ts";
import { disturbancesOf } from "./disturbances.ts";
import { tortureDoor } from "./door.ts";
import { history } from "./history.ts";
import { HostileUpstream } from "./hostile-upstream.ts";
import { KeyWatch } from "./key-watch.ts";
import { readLeftovers } from "./leftovers.ts";
import { mintTokens, prepare, settingsFor } from "./prepare.ts";
import { auditReadBack, readBack } from "./read-back.ts";
import { followAll } from "./settle.ts";
import { StandIn } from "./stand-in.ts";
import { TimeTravel } from "./time-travel.ts";
import { processTroubles, trouble } from "./troubles.ts";
import { Weather } from "./weather.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

const lanes = 48;
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** A job that nobody follows is asked about within ten minutes, and over after a day; the clock it was taken by may have been ahead. */
const sleepsMs = [20 * minuteMs, dayMs + 100 * minuteMs];
/** By then every link has ended, and no meter has been used for so long that it is kept. */
const emptyAfterMs = 90 * dayMs;
const quietWithinMs = 120_000;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "300" },
    seed: { type: "string" },
    without: { type: "string", multiple: true, default: [] },
  },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const seconds = Number(values.seconds);
console.log(`Seed ${seed}, ${seconds} s: npm run torture -- --seconds ${seconds} --seed ${seed}`);

const watch = new KeyWatch();
const upstream = await new HostileUpstream(seed).listen();
const receiver = await new WebhookReceiver(watch).listen();
const stores = await Promise.all((["kv", "r2", "cache"] as const).map((store) => StandIn.serve(store, watch)));
const served: ServeOptions = {
  settings: settingsFor(upstream.url, seed),
  tmpfs: false,
  door: await tortureDoor(),
  storesAt: Object.fromEntries(stores.map(({ store, address }) => [store, address])),
};
const server = await Server.start(served);
server.onLine = (line) => {
  watch.look("a line of the log", line);
  history.note(`log: ${line}`);
};
upstream.gateway = server.url;
let faults: readonly string[] = [];
try {
  faults = await torture();
} finally {
  await server.stop();
  await Promise.all([upstream, receiver, ...stores].map((one) => one.close()));
}
const different = new Map<string, number>();
for (const fault of faults) add(different, fault);
for (const [fault, times] of [...different].slice(0, 100))
  console.error(`FAULT ${fault}${times > 1 ? ` ×${times}` : ""}`);
console.log(faults.length === 0 ? "No fault." : `${faults.length} faults, seed ${seed}.`);
process.exit(faults.length === 0 ? 0 : 1);

async function torture(): Promise<string[]> {
  const weather = new Weather();
  const clients = new Clients(server.url, await prepare(server.url), seed, { receiver: receiver.url, watch, weather });
  const until = Date.now() + seconds * 1000;
  const disturbances = disturbancesOf({ stores, receiver, gateway: server.url, runMs: seconds * 1000 });
  const without = leftOut(disturbances);
  const around = { without, seed, server, upstream, disturbances, clients, weather };
  const [troubles] = await Promise.all([trouble(around, until), clients.run(lanes, until)]);
  upstream.calm = true;
  receiver.calm = true;
  const { lost, ended } = await followAll(clients, seed);
  const travel = new TimeTravel(server, served);
  lost.push(...(await quiet(travel)));
  for (const ms of sleepsMs) {
    lost.push(...(await sleep(travel, ms)));
    clients.tokens = await mintTokens(server.url);
    lost.push(...(await callMeters(clients, travel)));
  }
  upstream.forgets = true;
  const read = await readBack(clients, receiver, seed);
  // The first to come with a job's handle may prove which job it is: only then its webhook is told.
  lost.push(...(await quiet(travel)));
  await server.kill9();
  const books = readBooks(server.disk);
  report(clients, weather, books);
  const rows = books.flatMap((book) => book.rows);
  const audited = [
    ...audit(books, { ...upstream, handed: clients.handed, ended }),
    ...auditWebhooks(rows, receiver.told),
    ...auditReadBack(read, rows, upstream.jobs),
    ...auditOwed(rows, receiver.told, seed),
    ...(await auditUploads(server.disk, clients.uploads)),
  ];
  const left = await leftovers(travel);
  return [
    ...clients.tooManyBroken(),
    ...[...tooSeldom(clients.made, seconds), ...clients.faults, ...troubles, ...upstream.faults],
    ...[...receiver.faults, ...lost, ...audited, ...left, ...watch.faults],
  ];
}

/** What is due meanwhile is done, and nothing stays reserved that nobody asks about. */
async function sleep(travel: TimeTravel, ms: number): Promise<string[]> {
  await travel.sleep(ms);
  return quiet(travel);
}

/** A meter whose alarm the runtime has dropped goes on when its payer calls next. */
async function callMeters(clients: Clients, travel: TimeTravel): Promise<string[]> {
  for (const user of users) await clients.ask(user, "GET", "/usage");
  return quiet(travel);
}

async function quiet(travel: TimeTravel): Promise<string[]> {
  try {
    await travel.quiet(quietWithinMs);
    await eventually("the last try of each webhook", quietWithinMs, async () => owedWebhooks(server.disk).length === 0);
    return [];
  } catch (error) {
    return [`${String(error)}; at ${travel.now} there were still ${owedWebhooks(server.disk).join("; ")}`];
  }
}

async function leftovers(travel: TimeTravel): Promise<string[]> {
  const restless = await sleep(travel, emptyAfterMs);
  await server.kill9();
  const { objects, faults } = readLeftovers(server.disk);
  console.log(`${objects} objects of users, jobs and requests, ${faults.length} of them with something left`);
  return [...restless, ...faults, ...(await auditEmptyBucket())];
}

function leftOut(disturbances: readonly Disturbance[]): ReadonlySet<string> {
  const names = [...processTroubles, ...disturbances.map(({ name }) => name)];
  const unknown = values.without.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`--without knows no "${unknown}", but ${names.join(", ")}`);
  return new Set(values.without);
}

function report(clients: Clients, weather: Weather, books: readonly Books[]): void {
  console.log(`${clients.turns} turns, ${clients.accepted.length} jobs accepted`);
  console.log(`Operations: ${tell(clients.made)}`);
  console.log(`Troubles: ${tell(weather.troubles)}; told that the upstream is down ×${weather.down}`);
  console.log(`The upstream took ${upstream.jobs.size} jobs and ${upstream.chats.size} chats: ${tell(upstream.done)}`);
  console.log(`Answers: ${tell(clients.answers)}`);
  console.log(`${clients.broken.length} exchanges were broken off, and no kill explains it`);
  console.log(`Webhooks received: ${tell(receiver.received)}`);
  console.log(`Calls of the stores: ${stores.map(({ store, calls }) => `${store} ×${calls}`).join(", ")}`);
  console.log(`Looked at for the key: ${tell(watch.looked)}`);
  console.log(
    `Balances in micro-USD: ${books.map(({ sums }) => `${sums.known} known + ${sums.assumed} assumed`).join("; ")}`,
  );
}
