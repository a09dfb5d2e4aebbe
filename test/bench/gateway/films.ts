// A film of 20 MB through the gateway: how far its process grows while the film flows, from its source and from the cache.
import { get, type IncomingMessage } from "node:http";
import { Server } from "../../support/serve.ts";
import { eventually } from "../../support/serve-eventually.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { testSettings } from "../../support/settings.ts";
import { median, timed } from "../statistics.ts";
import { serveBare } from "./bare-worker.ts";

export interface FilmRow {
  readonly row: string;
  /** Peak above the memory before, of a process that has served smaller ones; the median of fresh starts. */
  readonly gatewayGrewMB: number;
  readonly passthroughGrewMB: number;
  readonly gatewayMs: number;
  readonly passthroughMs: number;
}

interface Film {
  readonly row: string;
  readonly atOnce: number;
  readonly cached: boolean;
}

const films: readonly Film[] = [
  { row: "from its source, filling the cache", atOnce: 1, cached: false },
  { row: "the same, 4 at once", atOnce: 4, cached: false },
  { row: "from the cache", atOnce: 1, cached: true },
  { row: "the same, 4 at once", atOnce: 4, cached: true },
];
const filmModel = "wan-2-6-t2v";
const pictureModel = "black-forest-labs-flux-1-schnell";
const filmPath = "/films/film.mp4";
const picturePath = "/images/picture.jpeg";
const warmUps = 10;
const keptWithinMs = 10_000;

interface Stage {
  readonly upstream: WorkerdProcess;
  readonly cache: WorkerdProcess;
  readonly passthrough: WorkerdProcess;
  readonly gateway: Server;
  readonly token: string;
}

export async function measureFilms(rounds: number): Promise<FilmRow[]> {
  const stage = await setStage();
  try {
    const rows: FilmRow[] = [];
    for (const film of films) rows.push(await measure(stage, film, rounds));
    return rows;
  } finally {
    const { upstream, cache, passthrough, gateway } = stage;
    await Promise.all([upstream, cache, passthrough, gateway].map((server) => server.stop()));
  }
}

/** The cache is a process of its own: at the edge it is none of the Worker's memory. */
async function setStage(): Promise<Stage> {
  const upstream = await serveBare({ script: "upstream" });
  const cache = await serveBare({ script: "cache" });
  const passthrough = await serveBare({ script: "passthrough", upstream: upstream.url });
  const settings = {
    UPSTREAM_URL: upstream.url,
    UPSTREAM_API_KEY: "key-of-the-upstream-0123456789abcdef",
    MEDIA_HOSTS: new URL(upstream.url).host,
  };
  const gateway = await Server.start({
    settings,
    floodLimit: 1_000_000,
    storesAt: { cache: `127.0.0.1:${cache.port}` },
  });
  const init = { method: "POST", headers: { Authorization: `Bearer ${testSettings.APP_SECRET}` } };
  const minted = await fetch(`${gateway.url}/tokens`, { ...init, body: '{"user":"ada","plan":"unlimited"}' });
  return { upstream, cache, passthrough, gateway, token: ((await minted.json()) as { token: string }).token };
}

async function measure(stage: Stage, { row, atOnce, cached }: Film, rounds: number): Promise<FilmRow> {
  const found = { gateway: [] as Grown[], passthrough: [] as Grown[] };
  const { gateway, passthrough } = stage;
  for (let round = 0; round < rounds; round++) {
    await fresh(gateway);
    const links = await times(atOnce, () => linkOf(stage, filmModel));
    if (cached) {
      for (const link of links) await download(link, "MISS");
      await kept(stage, links);
      await fresh(gateway);
    }
    for (let n = 0; n < warmUps; n++) {
      const pictures = await times(atOnce, () => linkOf(stage, pictureModel));
      await Promise.all(pictures.map((link) => download(link, "MISS")));
      await kept(stage, pictures);
      await Promise.all(pictures.map((link) => download(link, "HIT")));
    }
    const cache = cached ? "HIT" : "MISS";
    found.gateway.push(await grow(gateway, links, cache, () => kept(stage, links)));
    await fresh(passthrough);
    for (let n = 0; n < warmUps; n++) await times(atOnce, () => download(passthrough.url + picturePath));
    found.passthrough.push(
      await grow(
        passthrough,
        links.map(() => passthrough.url + filmPath),
      ),
    );
  }
  const of = (who: "gateway" | "passthrough", what: keyof Grown) => median(found[who].map((grown) => grown[what]));
  return {
    row,
    gatewayGrewMB: of("gateway", "grewMB"),
    passthroughGrewMB: of("passthrough", "grewMB"),
    gatewayMs: of("gateway", "ms"),
    passthroughMs: of("passthrough", "ms"),
  };
}

function times<T>(many: number, act: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: many }, act));
}

/** Memory that was once taken is not given back. */
async function fresh(server: WorkerdProcess): Promise<void> {
  await server.kill9();
  await server.restart();
}

interface Grown {
  readonly grewMB: number;
  readonly ms: number;
}

/** `after`: what goes on beside the answers is measured too. */
async function grow(server: WorkerdProcess, urls: readonly string[], cache?: string, after?: () => Promise<void>) {
  server.forgetPeak();
  const before = server.memory().now;
  const ms = await timed(() => Promise.all(urls.map((url) => download(url, cache))));
  await after?.();
  return { grewMB: (server.memory().peak - before) / 1e6, ms };
}

/** Once the cache has all of them. */
async function kept({ cache, gateway }: Stage, links: readonly string[]): Promise<void> {
  for (const link of links) {
    const headers = { Host: `127.0.0.1:${gateway.port}` };
    const ask = () => statusOf(cache.url + new URL(link).pathname, headers);
    await eventually("the cache's copy", keptWithinMs, async () => (await ask()) === 200);
  }
}

/** A link that nobody has fetched yet. */
async function linkOf({ gateway, token }: Stage, model: string): Promise<string> {
  const input = { prompt: "a lighthouse", seed: -1 };
  const init = { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify({ input }) };
  const response = await fetch(`${gateway.url}/v2/${model}/runsync`, init);
  const answer = (await response.json()) as { output?: { video_url?: string; image_url?: string } };
  const link = answer.output?.video_url ?? answer.output?.image_url;
  if (link === undefined) throw new Error(`no link: ${JSON.stringify(answer)}`);
  return link;
}

/** Reads a film as fast as it comes, and throws it away. */
async function download(url: string, cache?: string): Promise<void> {
  const { statusCode, headers } = await read(url, {});
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`);
  if (cache !== undefined && headers["x-cache"] !== cache) throw new Error(`${url} was no ${cache}`);
}

async function statusOf(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return (await read(url, headers)).statusCode;
}

function read(url: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent: false, headers }, (response) => {
      response.resume().once("error", reject);
      response.once("end", () => resolve(response));
    });
    sent.once("error", reject);
  });
}
