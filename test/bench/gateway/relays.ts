// Small exchanges through the gateway, beside what it is held against: requests a second, CPU, and what it adds to the wait.
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { median, quantile } from "../statistics.ts";
import { load, requestText } from "./load.ts";
import type { Stage, Subject } from "./stage.ts";

export interface RelayRow {
  readonly row: string;
  readonly passthroughPerSecond: number;
  readonly gatewayPerSecond: number;
  /** Round by round, the gateway against the other: the median, and between which quartiles the rounds lie. */
  readonly ofPassthrough: string;
  readonly ofFloor: string;
  /** CPU a request: others on the machine change the requests a second, and this far less. */
  readonly passthroughCpuMs: number;
  readonly floorCpuMs: number | "";
  readonly gatewayCpuMs: number;
  readonly addedP50Ms: number;
}

export interface Effort {
  readonly rounds: number;
  readonly loadMs: number;
  readonly aloneMs: number;
}

interface Relay {
  readonly row: string;
  readonly against: readonly Subject[];
  readonly requests: (stage: Stage) => Promise<readonly string[]>;
}

const running = "black-forest-labs-flux-1-dev";
const ended = "black-forest-labs-flux-1-schnell";
const body = JSON.stringify({ input: { prompt: "a lighthouse in the evening", width: 1024, height: 768 } });

const relays: readonly Relay[] = [
  { row: "status of a job that runs", against: ["passthrough"], requests: (stage) => statuses(stage, running) },
  { row: "status of a job that has ended", against: ["passthrough"], requests: (stage) => statuses(stage, ended) },
  {
    row: "run, with quota",
    against: ["passthrough", "floor"],
    requests: async ({ tokens }) => tokens.map((token) => requestText("POST", `/v2/${running}/run`, token, body)),
  },
  { row: "runsync, answered from the cache", against: ["passthrough"], requests: hits },
  { row: "a picture of 64 KB, retrieved", against: ["passthrough"], requests: pictures },
];

const connections = 32;

export async function measureRelays(stage: Stage, effort: Effort): Promise<RelayRow[]> {
  const rows: RelayRow[] = [];
  for (const relay of relays) rows.push(await measure(stage, relay, effort));
  return rows;
}

async function statuses({ servers, tokens }: Stage, model: string): Promise<string[]> {
  const texts: string[] = [];
  for (const token of tokens) {
    const response = await post(servers.gateway, `/v2/${model}/run`, token, body);
    const { id } = (await response.json()) as { id: string };
    texts.push(requestText("GET", `/v2/${model}/status/${id}`, token));
  }
  return texts;
}

const seeded = JSON.stringify({ input: { prompt: "a lighthouse in the evening", seed: 7 } });

/** Each asked twice, since KV knows of a miss for a while. */
async function hits({ servers, tokens }: Stage): Promise<string[]> {
  const path = `/v2/${running}/runsync`;
  for (const token of tokens) await (await post(servers.gateway, path, token, seeded)).arrayBuffer();
  for (const token of tokens) {
    const again = await post(servers.gateway, path, token, seeded);
    const cache = again.headers.get("X-Cache");
    if (cache !== "HIT") throw new Error(`a second request is a ${cache}: ${await again.text()}`);
    await again.arrayBuffer();
  }
  return tokens.map((token) => requestText("POST", path, token, seeded));
}

async function pictures({ servers, tokens }: Stage): Promise<string[]> {
  const texts: string[] = [];
  for (const token of tokens) {
    const response = await post(servers.gateway, `/v2/${running}/runsync`, token, seeded);
    const { output } = (await response.json()) as { output: { image_url: string } };
    const path = new URL(output.image_url).pathname;
    const picture = await fetch(servers.gateway.url + path);
    if (picture.status !== 200) throw new Error(`${path} answered ${picture.status}: ${await picture.text()}`);
    await picture.arrayBuffer();
    texts.push(requestText("GET", path, token));
  }
  return texts;
}

function post(server: WorkerdProcess, path: string, token: string, json: string): Promise<Response> {
  return fetch(server.url + path, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: json });
}

interface Measured {
  readonly perSecond: number[];
  readonly cpuMs: number[];
  readonly p50Ms: number[];
}

async function measure(stage: Stage, { row, against, requests }: Relay, effort: Effort): Promise<RelayRow> {
  const texts = await requests(stage);
  const subjects: readonly Subject[] = [...against, "gateway"];
  const measured = new Map<Subject, Measured>();
  for (const subject of subjects) measured.set(subject, { perSecond: [], cpuMs: [], p50Ms: [] });
  // The first round warms up.
  for (let round = -1; round < effort.rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : [...subjects].reverse()) {
      const told = await once(stage.servers[subject], texts, effort);
      const kept = measured.get(subject);
      if (round < 0 || !kept) continue;
      kept.perSecond.push(told.perSecond);
      kept.cpuMs.push(told.cpuMs);
      kept.p50Ms.push(told.p50Ms);
    }
  }
  return describe(row, measured);
}

async function once(server: WorkerdProcess, requests: readonly string[], { loadMs, aloneMs }: Effort) {
  const { port } = server;
  const before = server.cpuMs();
  const { perSecond, answered } = await load({ port, requests, connections, durationMs: loadMs });
  const cpuMs = (server.cpuMs() - before) / answered;
  const { p50Ms } = await load({ port, requests, connections: 1, durationMs: aloneMs });
  return { perSecond, cpuMs, p50Ms };
}

function describe(row: string, measured: ReadonlyMap<Subject, Measured>): RelayRow {
  const of = (subject: Subject, what: keyof Measured) => measured.get(subject)?.[what] ?? [];
  const ratios = (subject: Subject) => paired(of("gateway", "perSecond"), of(subject, "perSecond"));
  const added = of("gateway", "p50Ms").map((ms, round) => ms - (of("passthrough", "p50Ms")[round] ?? Number.NaN));
  return {
    row,
    passthroughPerSecond: Math.round(median(of("passthrough", "perSecond"))),
    gatewayPerSecond: Math.round(median(of("gateway", "perSecond"))),
    ofPassthrough: spread(ratios("passthrough")),
    ofFloor: spread(ratios("floor")),
    passthroughCpuMs: median(of("passthrough", "cpuMs")),
    floorCpuMs: measured.has("floor") ? median(of("floor", "cpuMs")) : "",
    gatewayCpuMs: median(of("gateway", "cpuMs")),
    addedP50Ms: median(added),
  };
}

export function paired(own: readonly number[], other: readonly number[]): number[] {
  return own.flatMap((value, round) => (other[round] === undefined ? [] : [value / other[round]]));
}

export function spread(ratios: readonly number[]): string {
  if (ratios.length === 0) return "";
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(2));
  return `${middle}× (${low} to ${high})`;
}
