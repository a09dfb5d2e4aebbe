// Other gateways beside ours: the same small request and the same stream, relayed to the same upstream.
import { type Loaded, load, requestText } from "../gateway/load.ts";
import { type Stage, subjectNames } from "../gateway/stage.ts";
import { median, paired, type Ratio } from "../statistics.ts";
import { installPeers } from "./install.ts";
import { PeerProcess } from "./peer-process.ts";

export interface PeerRow {
  readonly who: string;
  readonly runsOn: string;
  readonly perSecond: number | undefined;
  /** A request's; the ratio is to the bare passthrough's, round by round. */
  readonly cpuMs: number | undefined;
  readonly cpu: Ratio | undefined;
  readonly streamCpuMs: number | undefined;
  readonly streamCpu: Ratio | undefined;
}

export interface PeerEffort {
  readonly rounds: number;
  readonly loadMs: number;
  readonly streamMs: number;
}

/** Whoever relays: where it listens, and how it wants to be asked for what the upstream has at the path. */
interface Relay {
  readonly who: string;
  readonly runsOn: string;
  readonly process: { readonly port: number; cpuMs(): number };
  readonly ask: (body: string) => readonly string[];
}

const route = "/v2/qwen3-32b-awq/openai/v1";
const path = `${route}/chat/completions`;
const bodyOf = (stream: boolean) =>
  JSON.stringify({ model: "qwen3-32b-awq", stream, messages: [{ role: "user", content: "hello" }] });
const connections = 32;

export async function measurePeers(stage: Stage, effort: PeerEffort): Promise<PeerRow[]> {
  const folder = installPeers();
  if (folder === undefined) console.error("The peers could not be installed: their rows stay empty.");
  const started = folder === undefined ? [] : [await startPortkey(folder, stage), await startFal(folder, stage)];
  try {
    const rows = await measure([...ours(stage), ...started.map(({ relay }) => relay)], effort);
    return [...rows, ...peerNames.slice(started.length).map(emptyRow)];
  } finally {
    await Promise.all(started.map(({ peer }) => peer.stop()));
  }
}

function ours({ servers, tokens }: Stage): Relay[] {
  const ask = (body: string) => tokens.map((token) => requestText("POST", path, token, body));
  const subjects = ["passthrough", "unmetered", "gateway"] as const;
  return subjects.map((subject) => ({
    who: subjectNames[subject],
    runsOn: "workerd",
    process: servers[subject],
    ask,
  }));
}

const peerNames = ["@portkey-ai/gateway", "@fal-ai/server-proxy"] as const;
const runsOn = "Node";

interface Started {
  readonly peer: PeerProcess;
  readonly relay: Relay;
}

/** Where `@hono/node-server` is newer than its `package.json` wants at least, it answers a stream with 500. */
async function startPortkey(folder: string, { upstream, tokens }: Stage): Promise<Started> {
  const script = "node_modules/@portkey-ai/gateway/build/start-server.js";
  const peer = await PeerProcess.start(folder, (port) => [script, `--port=${port}`, "--headless"]);
  const headers = { "x-portkey-provider": "openai", "x-portkey-custom-host": upstream.url + route };
  const ask = (body: string) =>
    tokens.map((token) => requestText("POST", "/v1/chat/completions", token, body, headers));
  return { peer, relay: { who: peerNames[0], runsOn, process: peer, ask } };
}

async function startFal(folder: string, { upstream, tokens }: Stage): Promise<Started> {
  const host = new URL(upstream.url).host;
  const peer = await PeerProcess.start(folder, (port) => ["fal-proxy.js", String(port), host]);
  const headers = { "x-fal-target-url": upstream.url + path };
  const ask = (body: string) => tokens.map((token) => requestText("POST", "/api/fal/proxy", token, body, headers));
  return { peer, relay: { who: peerNames[1], runsOn, process: peer, ask } };
}

function emptyRow(who: string): PeerRow {
  const nothing = { perSecond: undefined, cpuMs: undefined, cpu: undefined };
  return { who, runsOn, ...nothing, streamCpuMs: undefined, streamCpu: undefined };
}

async function measure(relays: readonly Relay[], { rounds, loadMs, streamMs }: PeerEffort): Promise<PeerRow[]> {
  const found = relays.map((relay) => ({
    relay,
    perSecond: [] as number[],
    cpu: [] as number[],
    stream: [] as number[],
  }));
  // The first round warms up.
  for (let round = -1; round < rounds; round++) {
    for (const { relay, perSecond, cpu, stream } of round % 2 === 0 ? found : [...found].reverse()) {
      const small = await once(relay, bodyOf(false), connections, loadMs);
      const streamed = await once(relay, bodyOf(true), 1, streamMs);
      if (round < 0) continue;
      perSecond.push(small.perSecond);
      cpu.push(small.cpuMs);
      stream.push(streamed.cpuMs);
    }
  }
  const [bare] = found;
  const toBare = (own: readonly number[], other: readonly number[] = []) =>
    own === other ? undefined : paired(own, other);
  return found.map(({ relay: { who, runsOn }, perSecond, cpu, stream }) => ({
    who,
    runsOn,
    perSecond: median(perSecond),
    cpuMs: median(cpu),
    cpu: toBare(cpu, bare?.cpu),
    streamCpuMs: median(stream),
    streamCpu: toBare(stream, bare?.stream),
  }));
}

async function once(relay: Relay, body: string, connections: number, durationMs: number) {
  const { port } = relay.process;
  const before = relay.process.cpuMs();
  const { perSecond, answered }: Loaded = await load({
    port,
    requests: relay.ask(body),
    connections,
    until: { durationMs },
  });
  return { perSecond, cpuMs: (relay.process.cpuMs() - before) / answered };
}
