// Small exchanges through the gateway, beside what it is held against: requests a second, CPU, and what it adds to the wait.
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { testSettings } from "../../support/settings.ts";
import { median, paired, type Ratio } from "../statistics.ts";
import { load, requestText } from "./load.ts";
import { openEndpoint, type Stage, type Subject, subjectNames } from "./stage.ts";

export interface RelayRow {
  readonly row: string;
  readonly beside: string;
  readonly otherPerSecond: number;
  readonly perSecond: number;
  /** Round by round, how many the gateway answers for one of the other's. */
  readonly rate: Ratio;
  /** A request's: others on the machine change the requests a second, and this far less. */
  readonly otherCpuMs: number;
  readonly cpuMs: number;
  readonly cpu: Ratio;
  /** One request at a time. */
  readonly addedP50Ms: number;
  /** Undefined where the machine is not quiet enough to say. */
  readonly addedP99Ms: number | undefined;
}

export interface Effort {
  /** How many requests each is asked before it is measured: until then the runtime compiles the code that they run. */
  readonly warmUp: number;
  readonly rounds: number;
  readonly loadMs: number;
  readonly aloneMs: number;
  readonly quiet: boolean;
}

type Requests = (stage: Stage) => Promise<readonly string[]>;

/** Another kind of request, at the same server. */
interface OtherRequests {
  readonly name: string;
  readonly requests: Requests;
}

interface Relay {
  readonly row: string;
  readonly measured: Subject;
  readonly beside: readonly (Subject | OtherRequests)[];
  readonly requests: Requests;
}

const running = "black-forest-labs-flux-1-dev";
const ended = "black-forest-labs-flux-1-schnell";
const body = JSON.stringify({ input: { prompt: "a lighthouse in the evening", width: 1024, height: 768 } });

const gateway = "gateway";
const bare = ["passthrough"] as const;
const withLeast = ["passthrough", "least"] as const;
const aRun: OtherRequests = { name: "run, with quota, at the same server", requests: runs };

const relays: readonly Relay[] = [
  {
    row: "status of a job that runs",
    measured: gateway,
    beside: withLeast,
    requests: (stage) => statuses(stage, running),
  },
  {
    row: "status of a job that has ended",
    measured: gateway,
    beside: withLeast,
    requests: (stage) => statuses(stage, ended),
  },
  { row: "run, without the meter", measured: "unmetered", beside: withLeast, requests: runs },
  { row: "run, with quota", measured: gateway, beside: ["passthrough", "floor"], requests: runs },
  { row: "load balancing, at the platform", measured: "balanced", beside: bare, requests: balancedByKey },
  { row: "load balancing, with quota", measured: "named", beside: ["passthrough", "floor", aRun], requests: balanced },
  { row: "load balancing, with quota and platform", measured: "balanced", beside: bare, requests: balanced },
  { row: "runsync, answered from the cache", measured: gateway, beside: bare, requests: hits },
  { row: "a picture of 64 KB", measured: gateway, beside: bare, requests: pictures },
];

const connections = 32;

export async function measureRelays(stage: Stage, effort: Effort): Promise<RelayRow[]> {
  const rows: RelayRow[] = [];
  for (const relay of relays) rows.push(...(await measure(stage, relay, effort)));
  return rows;
}

async function runs({ tokens }: Stage): Promise<string[]> {
  return tokens.map((token) => requestText("POST", `/v2/${running}/run`, token, body));
}

async function balanced({ tokens }: Stage): Promise<string[]> {
  return tokens.map((token) => requestText("POST", `/lb/${openEndpoint}/echo`, token, body));
}

async function balancedByKey(): Promise<string[]> {
  return [requestText("POST", `/platform/lb/${openEndpoint}/echo`, testSettings.PLATFORM_API_KEY, body)];
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
  readonly p99Ms: number[];
}

interface Contender {
  readonly name: string;
  readonly server: WorkerdProcess;
  readonly texts: readonly string[];
  readonly found: Measured;
}

async function measure(stage: Stage, relay: Relay, effort: Effort): Promise<RelayRow[]> {
  const texts = await relay.requests(stage);
  const contender = (name: string, subject: Subject, asked: readonly string[]): Contender => {
    return {
      name,
      server: stage.servers[subject],
      texts: asked,
      found: { perSecond: [], cpuMs: [], p50Ms: [], p99Ms: [] },
    };
  };
  const own = contender(subjectNames[relay.measured], relay.measured, texts);
  const others: Contender[] = [];
  for (const other of relay.beside) {
    if (typeof other === "string") others.push(contender(subjectNames[other], other, texts));
    else others.push(contender(other.name, relay.measured, await other.requests(stage)));
  }
  const contenders = [...others, own];
  for (const { server, texts } of contenders) {
    await load({ port: server.port, requests: texts, connections, until: { asked: effort.warmUp } });
  }
  // The first round opens the connections again that rested too long.
  for (let round = -1; round < effort.rounds; round++) {
    for (const { server, texts, found } of round % 2 === 0 ? contenders : [...contenders].reverse()) {
      const told = await once(server, texts, effort);
      if (round >= 0) for (const [what, values] of entriesOf(found)) values.push(told[what]);
    }
  }
  return others.map(({ name, found }) => {
    const { addedP99Ms, ...row } = describe(own.found, found);
    return { row: relay.row, beside: name, ...row, addedP99Ms: effort.quiet ? addedP99Ms : undefined };
  });
}

function entriesOf(measured: Measured): [keyof Measured, number[]][] {
  return Object.entries(measured) as [keyof Measured, number[]][];
}

async function once(server: WorkerdProcess, requests: readonly string[], { loadMs, aloneMs }: Effort) {
  const { port } = server;
  const before = server.cpuMs();
  const { perSecond, answered } = await load({ port, requests, connections, until: { durationMs: loadMs } });
  const cpuMs = (server.cpuMs() - before) / answered;
  const { p50Ms, p99Ms } = await load({ port, requests, connections: 1, until: { durationMs: aloneMs } });
  return { perSecond, cpuMs, p50Ms, p99Ms };
}

function describe(own: Measured, other: Measured) {
  const added = (what: keyof Measured) => median(own[what].map((ms, round) => ms - (other[what][round] ?? Number.NaN)));
  return {
    otherPerSecond: median(other.perSecond),
    perSecond: median(own.perSecond),
    rate: paired(own.perSecond, other.perSecond),
    otherCpuMs: median(other.cpuMs),
    cpuMs: median(own.cpuMs),
    cpu: paired(own.cpuMs, other.cpuMs),
    addedP50Ms: added("p50Ms"),
    addedP99Ms: added("p99Ms"),
  };
}
