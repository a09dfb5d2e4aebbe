// What a run costs by how long its payer's meter has slept, beside the floor Worker, whose objects sleep as long.
import { setTimeout } from "node:timers/promises";
import type { Server } from "../../support/serve.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { type Held, median, paired } from "../statistics.ts";
import { serveBare } from "./bare-worker.ts";
import { load, requestText } from "./load.ts";
import { mint, serveGateway } from "./stage.ts";

export interface PayersRow {
  readonly row: string;
  readonly floorCpuMs: number;
  readonly cpuMs: number;
  readonly cpu: Held;
}

export interface PayersEffort {
  readonly rounds: number;
  readonly strangers: number;
  readonly crowd: number;
  readonly awake: number;
  readonly restMs: number;
  /** What follows the last answer counts too: rows that are written a second later. */
  readonly afterwardsMs: number;
}

export const fullEffort: PayersEffort = {
  rounds: 5,
  strangers: 700,
  crowd: 2000,
  awake: 64,
  // The runtime evicts an object ten seconds after its last request.
  restMs: 13_000,
  afterwardsMs: 1500,
};
export const smallEffort: PayersEffort = {
  rounds: 1,
  strangers: 20,
  crowd: 40,
  awake: 4,
  restMs: 0,
  afterwardsMs: 0,
};

const connections = 32;
const renewals = 5;
/** On a busy machine more connections to the upstream idle than the load has of its own. */
const faultsAllowed = 100;
const model = "black-forest-labs-flux-1-dev";
const body = JSON.stringify({ input: { prompt: "a lighthouse in the evening", width: 1024, height: 768 } });

/** What Sluice may cost, as a multiple of the floor Worker's CPU. */
const rows = {
  first: { row: "the first run of a payer", atMost: 1.8 },
  evicted: { row: "a run of a payer whose objects were evicted", atMost: 1.6 },
  crowd: { row: "a run of each of 2,000 payers in turn", atMost: 1.7 },
  awake: { row: "a run of a payer who is awake", atMost: 1.6 },
} as const;
type RowName = keyof typeof rows;
type Costs = Record<RowName, { floor: number[]; gateway: number[] }>;

export async function measurePayers(effort: PayersEffort): Promise<PayersRow[]> {
  const costs = newCosts();
  for (let round = 0; round < effort.rounds; round++) await measureRound(round, effort, costs);
  return Object.entries(rows).map(([name, { row, atMost }]) => {
    const { floor: other, gateway: own } = costs[name as RowName];
    return { row, floorCpuMs: median(other), cpuMs: median(own), cpu: { ...paired(own, other), atMost } };
  });
}

function newCosts(): Costs {
  return {
    first: { floor: [], gateway: [] },
    evicted: { floor: [], gateway: [] },
    crowd: { floor: [], gateway: [] },
    awake: { floor: [], gateway: [] },
  };
}

/** With servers of its own: a minute later meters report, and that of other rounds' payers would count here. */
async function measureRound(round: number, effort: PayersEffort, costs: Costs): Promise<void> {
  const upstream = await serveBare({ script: "upstream" });
  const floor = await serveBare({ script: "floor", upstream: upstream.url });
  const gateway = await serveGateway(upstream);
  try {
    await measurePasses(round, { floor, gateway }, effort, costs);
  } finally {
    await Promise.all([gateway, floor, upstream].map((server) => server.stop()));
  }
}

interface Servers {
  readonly floor: WorkerdProcess;
  readonly gateway: Server;
}

async function measurePasses(round: number, servers: Servers, effort: PayersEffort, costs: Costs): Promise<void> {
  const order = round % 2 === 0 ? (["floor", "gateway"] as const) : (["gateway", "floor"] as const);
  const pass = async (requests: readonly string[], asked: number, name?: RowName) => {
    for (const which of order) {
      const cpuMs = await costOf(servers[which], requests, asked, effort.afterwardsMs);
      if (name) costs[name][which].push(cpuMs);
    }
  };
  const awake = await runsOf(servers.gateway, "awake", effort.awake);
  const strangers = await runsOf(servers.gateway, "stranger", effort.strangers);
  const crowd = await runsOf(servers.gateway, "crowd", effort.crowd);
  // What the runtime compiles while it warms up is no payer's.
  await pass(awake, effort.crowd);
  await pass(awake, effort.crowd, "awake");
  await pass(strangers, effort.strangers, "first");
  await setTimeout(effort.restMs);
  const status = await statusOf(servers.gateway);
  for (const which of order) await renewConnections(servers[which], status);
  await pass(strangers, effort.strangers, "evicted");
  await pass(crowd, effort.crowd);
  await pass(crowd, effort.crowd, "crowd");
}

async function runsOf(gateway: Server, who: string, count: number): Promise<string[]> {
  const texts: string[] = [];
  for (let n = 0; n < count; n++) {
    texts.push(requestText("POST", `/v2/${model}/run`, await mint(gateway, `${who}-${n}`), body));
  }
  return texts;
}

/** Of one more payer's job, which costs no run. */
async function statusOf(gateway: Server): Promise<string> {
  const token = await mint(gateway, "poller");
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(`${gateway.url}/v2/${model}/run`, { method: "POST", headers, body });
  const { id } = (await response.json()) as { id: string };
  return requestText("GET", `/v2/${model}/status/${id}`, token);
}

/** While the others were measured and objects rested, the upstream hung up: each lost connection costs one answer. */
async function renewConnections({ port }: WorkerdProcess, status: string): Promise<void> {
  for (let tries = 0; tries < renewals; tries++) {
    const renewed = load({ port, requests: [status], connections, until: { asked: 10 * connections } });
    if (await renewed.catch(() => undefined)) return;
  }
}

async function costOf(
  server: WorkerdProcess,
  requests: readonly string[],
  asked: number,
  afterwardsMs: number,
): Promise<number> {
  const before = server.cpuMs();
  const { answered } = await load({ port: server.port, requests, connections, until: { asked }, faultsAllowed });
  await setTimeout(afterwardsMs);
  return (server.cpuMs() - before) / answered;
}
