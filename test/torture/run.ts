// `npm run torture [-- --seconds 300 --seed 7]`: the gateway over real processes, with everything that can go wrong going wrong.
import { parseArgs } from "node:util";
import { Server } from "../support/serve.ts";
import { eventually, inParallel } from "../support/serve-eventually.ts";
import { testSettings } from "../support/settings.ts";
import { audit, readBooks } from "./books.ts";
import { chance, users } from "./chance.ts";
import { Clients, model } from "./clients.ts";
import { HostileUpstream, pause, upstreamKey } from "./hostile-upstream.ts";

const lanes = 12;
/** A job that nobody follows is settled when it expires, a minute after its ttl. */
const settlesWithinMs = 150_000;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "300" }, seed: { type: "string" } },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const seconds = Number(values.seconds);
console.log(`Seed ${seed}, ${seconds} s: npm run torture -- --seconds ${seconds} --seed ${seed}`);

const upstream = await new HostileUpstream(seed).listen();
const settings = {
  UPSTREAM_URL: upstream.url,
  UPSTREAM_API_KEY: upstreamKey,
  // Any origin will do: the upstream knows where its notices go.
  PUBLIC_URL: "http://gateway.example.com",
};
const server = await Server.start({ settings, tmpfs: false });
upstream.gateway = server.url;
let faults: readonly string[] = [];
try {
  faults = await torture();
} finally {
  await server.stop();
  await upstream.close();
}
for (const fault of faults.slice(0, 50)) console.error(`FAULT ${fault}`);
console.log(faults.length === 0 ? "No fault." : `${faults.length} faults, seed ${seed}.`);
process.exit(faults.length === 0 ? 0 : 1);

async function torture(): Promise<string[]> {
  await tell("PUT", `/admin/models/${model}`, { passthrough: true, maxUsd: 0.01 });
  const limits = [
    { unit: "jobs", limit: 500 },
    { unit: "usd", limit: 100_000, per: "day" },
  ];
  await tell("PUT", "/admin/plans/tortured", { rules: limits });
  const tokens = new Map<string, string>();
  for (const user of users) tokens.set(user, await mint(user));

  const clients = new Clients(server.url, tokens, seed);
  const until = Date.now() + seconds * 1000;
  const [kills] = await Promise.all([killUntil(until, clients), clients.run(lanes, until)]);
  upstream.calm = true;
  const lost = await settle(clients);
  await server.kill9();
  report(clients, kills);
  return [...clients.faults, ...lost, ...audit(readBooks(server.disk), upstream.jobs)];
}

/** How often it was killed. */
async function killUntil(until: number, clients: Clients): Promise<number> {
  const next = chance(seed, -2);
  for (let kills = 0; ; kills++) {
    await pause(2000 + next() * 3000);
    if (Date.now() >= until) return kills;
    clients.killedAt = Date.now();
    await server.kill9();
    await server.restart();
    clients.killedAt = Date.now();
  }
}

/** Every accepted job is followed to its end, and every reservation is waited for. */
async function settle(clients: Clients): Promise<string[]> {
  const lost: string[] = [];
  await inParallel(clients.accepted, 8, async (job) => {
    const ended = await eventually(`the end of ${job.handle}`, settlesWithinMs, async () => {
      const answer = await clients.status(job);
      return answer && (answer.status === 404 || !/^IN_/.test(answer.state)) ? answer : undefined;
    }).catch(() => undefined);
    if (ended?.status !== 200) lost.push(`the accepted job ${job.handle} was answered with ${ended?.status}`);
  });
  for (const user of users) {
    await eventually(`the last reservation of ${user}`, settlesWithinMs, async () => {
      const { spent } = (await tell("GET", `/admin/users/${user}`)) as { spent: { reservedUsd: number } };
      return spent.reservedUsd === 0;
    }).catch((error: unknown) => lost.push(String(error)));
  }
  return lost;
}

function report(clients: Clients, kills: number): void {
  const counts = (from: ReadonlyMap<string, number>) =>
    [...from].sort(([left], [right]) => left.localeCompare(right)).map(([what, count]) => `${what} ×${count}`);
  console.log(`${clients.submitted} submissions, ${clients.accepted.length} accepted, ${kills} kills`);
  console.log(`The upstream took ${upstream.jobs.size} jobs: ${counts(upstream.done).join(", ")}`);
  console.log(`Answers: ${counts(clients.answers).join(", ")}`);
  const books = readBooks(server.disk).map(({ sums }) => `${sums.known} known + ${sums.assumed} assumed`);
  console.log(`Balances in micro-USD: ${books.join("; ")}`);
}

async function tell(method: string, path: string, body?: object): Promise<unknown> {
  const headers = { Authorization: `Bearer ${testSettings.ADMIN_TOKEN}` };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const response = await fetch(server.url + path, init);
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

async function mint(user: string): Promise<string> {
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = JSON.stringify({ user, plan: "tortured", ttlSeconds: 24 * 60 * 60 });
  const response = await fetch(`${server.url}/tokens`, { method: "POST", headers, body });
  return ((await response.json()) as { token: string }).token;
}
