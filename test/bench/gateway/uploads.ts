// A file of 20 MB into the bucket and out of it: how long that takes beside the least Worker, and how far each process grows.
import { request } from "node:http";
import { Server } from "../../support/serve.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { testSettings } from "../../support/settings.ts";
import { median, paired, type Ratio, timed } from "../statistics.ts";
import { serveBare } from "./bare-worker.ts";

export interface UploadRow {
  readonly row: string;
  readonly bareMs: number;
  readonly gatewayMs: number;
  /** Round by round. */
  readonly time: Ratio;
  /** Peak above the memory before, of a warm process; the median of fresh starts. */
  readonly bareGrewMB: number;
  readonly gatewayGrewMB: number;
}

interface Transfer {
  readonly row: string;
  readonly atOnce: number;
  readonly isUp: boolean;
}

const transfers: readonly Transfer[] = [
  { row: "20 MB up", atOnce: 1, isUp: true },
  { row: "the same, 4 at once", atOnce: 4, isUp: true },
  { row: "20 MB down", atOnce: 1, isUp: false },
  { row: "the same, 4 at once", atOnce: 4, isUp: false },
];
const fileBytes = 20_000_000;
const smallBytes = 300_000;
const warmUps = 15;

interface Stage {
  /** In a process of its own: at the edge it is none of the Worker's memory. */
  readonly bucket: WorkerdProcess;
  readonly bare: WorkerdProcess;
  readonly gateway: Server;
  readonly token: string;
}

export async function measureUploads(rounds: number): Promise<UploadRow[]> {
  const stage = await setStage();
  try {
    const rows: UploadRow[] = [];
    for (const transfer of transfers) rows.push(await measure(stage, transfer, rounds));
    return rows;
  } finally {
    await Promise.all([stage.bucket, stage.bare, stage.gateway].map((server) => server.stop()));
  }
}

async function setStage(): Promise<Stage> {
  const bucket = await serveBare({ script: "r2" });
  const r2At = `127.0.0.1:${bucket.port}`;
  const bare = await serveBare({ script: "bucket", r2At });
  const gateway = await Server.start({ floodLimit: 1_000_000, storesAt: { r2: r2At } });
  const headers = { Authorization: `Bearer ${testSettings.APP_SECRET}` };
  const body = '{"user":"ada","plan":"pro"}';
  const minted = await fetch(`${gateway.url}/tokens`, { method: "POST", headers, body });
  return { bucket, bare, gateway, token: ((await minted.json()) as { token: string }).token };
}

/** Where a file is put, and where it is fetched from. */
interface Place {
  readonly put: string;
  readonly get: string;
  readonly headers: Record<string, string>;
}

async function measure(stage: Stage, { row, atOnce, isUp }: Transfer, rounds: number): Promise<UploadRow> {
  const subjects = [
    { server: stage.bare, place: barePlace, ms: [] as number[], grewMB: [] as number[] },
    { server: stage.gateway, place: gatewayPlace, ms: [] as number[], grewMB: [] as number[] },
  ] as const;
  for (let round = 0; round < rounds; round++) {
    for (const { server, place, ms, grewMB } of round % 2 === 0 ? subjects : [...subjects].reverse()) {
      // Memory that was once taken is not given back.
      await server.kill9();
      await server.restart();
      for (let n = 0; n < warmUps; n++) await pass(await place(stage, smallBytes), file(smallBytes));
      const places = await Promise.all(Array.from({ length: atOnce }, () => place(stage, fileBytes)));
      if (!isUp) for (const one of places) await put(one, file(fileBytes));
      server.forgetPeak();
      const before = server.memory().now;
      ms.push(await timed(() => Promise.all(places.map((one) => (isUp ? put(one, file(fileBytes)) : get(one))))));
      grewMB.push((server.memory().peak - before) / 1e6);
      if (server === stage.gateway) await Promise.all(places.map((one) => remove(stage, one)));
    }
  }
  const [bare, gateway] = subjects;
  return {
    row,
    bareMs: median(bare.ms),
    gatewayMs: median(gateway.ms),
    time: paired(gateway.ms, bare.ms),
    bareGrewMB: median(bare.grewMB),
    gatewayGrewMB: median(gateway.grewMB),
  };
}

let places = 0;
async function barePlace({ bare }: Stage): Promise<Place> {
  places += 1;
  const url = `${bare.url}/${places % 4}`;
  return { put: url, get: url, headers: {} };
}

async function gatewayPlace({ gateway, token }: Stage, bytes: number): Promise<Place> {
  const body = JSON.stringify({ type: "image/jpeg", bytes });
  const headers = { Authorization: `Bearer ${token}` };
  const announced = await fetch(`${gateway.url}/uploads`, { method: "POST", headers, body });
  if (announced.status !== 200) throw new Error(`no place: ${await announced.text()}`);
  const { url, put } = (await announced.json()) as { url: string; put: { url: string; headers: Place["headers"] } };
  return { put: put.url, get: url, headers: put.headers };
}

async function remove({ token }: Stage, { get: url }: Place): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` };
  const removed = await fetch(url, { method: "DELETE", headers });
  if (removed.status !== 204) throw new Error(`not removed: ${removed.status}`);
}

const files = new Map<number, Buffer>();
function file(bytes: number): Buffer {
  const made = files.get(bytes) ?? Buffer.alloc(bytes, 7);
  made.set([0xff, 0xd8, 0xff, 0xe0]);
  files.set(bytes, made);
  return made;
}

async function pass(place: Place, body: Buffer): Promise<void> {
  await put(place, body);
  await get(place);
}

const put = ({ put: url, headers }: Place, body: Buffer) => exchange("PUT", url, 201, headers, body);
const get = ({ get: url }: Place) => exchange("GET", url, 200, {});

/** By node:http, which writes a buffer as it is; what is answered is thrown away. */
function exchange(
  method: string,
  url: string,
  expected: number,
  headers: Record<string, string>,
  body?: Buffer,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = body ? { "Content-Length": body.byteLength } : {};
    const sent = request(url, { method, agent: false, headers: { ...headers, ...length } }, (response) => {
      response.resume();
      if (response.statusCode !== expected) reject(new Error(`${method} answered ${response.statusCode}`));
      response.once("end", resolve);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}
