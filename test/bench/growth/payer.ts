// A payer with a past: what so many jobs of the last hours leave, each with an Idempotency-Key and a picture.
import type { DatabaseSync } from "node:sqlite";
import type { Server } from "../../support/serve.ts";
import { eventually } from "../../support/serve-eventually.ts";
import type { WorkerdProcess } from "../../support/serve-process.ts";
import { mint, serveGateway } from "../gateway/stage.ts";
import { workerSource } from "../gateway/workers/source.ts";
import { copyRow, plant } from "./plant.ts";

export const user = "payer";
export const model = "black-forest-labs-flux-1-dev";
const body = JSON.stringify({ input: { prompt: "a lighthouse in the evening", width: 1024, height: 768 } });

/** Of ended jobs the meter keeps the last thousand; of keys and pictures all that are younger than a day and a week. */
const keptJobs = 1000;
/** All of the past lies within it, so nothing of it is pruned yet. */
const pastMs = 12 * 60 * 60 * 1000;
/** A day's window has so many slots, and one that is half out of it: see `SlidingCounter`. */
const slots = 51;
const pastSlots = 25;

export class Payer {
  readonly server: Server;
  readonly token: string;

  private constructor(server: Server, token: string) {
    this.server = server;
    this.token = token;
  }

  /** One job is real, and went the whole way; the others are copies of what it left. `past` has the keys of all pictures. */
  static async withPast(upstream: WorkerdProcess, jobs: number): Promise<{ payer: Payer; past: string[] }> {
    const server = await serveGateway(upstream, { door: workerSource("door") });
    const payer = new Payer(server, await mint(server, user));
    await payer.makePictures(1, { "Idempotency-Key": "first" });
    await eventually("the first picture", 10_000, async () => (await payer.pictures(1)).length === 1);
    let past: string[] = [];
    await plant(server, "UserMeter", (database) => {
      plantPast(database, jobs);
      past = database
        .prepare("SELECT key FROM media")
        .all()
        .map(({ key }) => String(key));
    });
    await payer.#expectPast(jobs);
    return { payer, past };
  }

  /** What the meter itself says of it, once it has read its tables. */
  async #expectPast(jobs: number): Promise<void> {
    const { limits } = (await (await this.ask("/usage")).json()) as { limits: { name: string; used: number }[] };
    const used = limits.find(({ name }) => name === "requests-day")?.used;
    if (used !== jobs) throw new Error(`the meter remembers ${used} admissions, not ${jobs}`);
  }

  /** The keys of so many pictures, newest first. */
  async pictures(limit: number): Promise<string[]> {
    const { images } = (await (await this.ask(`/images?limit=${limit}`)).json()) as { images: { key: string }[] };
    return images.map(({ key }) => key);
  }

  async makePictures(count: number, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
    const keys: string[] = [];
    for (let n = 0; n < count; n++) {
      const response = await this.ask(`/v2/${model}/runsync`, { method: "POST", headers, body });
      const { output } = (await response.json()) as { output: { image_url: string } };
      keys.push(output.image_url.split("/").at(-1) ?? "");
    }
    return keys;
  }

  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${this.token}` };
    const response = await fetch(this.server.url + path, { ...init, headers });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response;
  }
}

function plantPast(database: DatabaseSync, jobs: number): void {
  const copies = jobs - 1;
  const earlier = (column: string) => `${column} - CAST(n * ${pastMs / jobs} AS INTEGER)`;
  /** It sorts before every real one. */
  const admission = "printf('%023d', n)";
  const kept = Math.min(copies, keptJobs);
  copyRow(database, "ended", kept, {
    admission,
    upstreamId: "upstreamId || '-' || n",
    idempotencyKey: "'past-' || n",
    admittedAt: earlier("admittedAt"),
    endedAt: earlier("endedAt"),
  });
  copyRow(database, "idempotency", copies, {
    admission,
    key: "'past-' || n",
    upstreamId: "upstreamId || '-' || n",
    expiresAt: earlier("expiresAt"),
  });
  copyRow(database, "media", copies, {
    key: "lower(hex(randomblob(16))) || substr(key, 33)",
    completedAt: earlier("completedAt"),
    expiresAt: earlier("expiresAt"),
  });
  countPast(database, { jobs, kept });
}

/** What the state's row says of the real job, which is the only one so far. */
interface State {
  readonly payer: { readonly windows: Record<string, number[]>; readonly money: Money; pruned: Money };
  readonly ended: { known: number };
}
/** An entry is the kind, then what is known, assumed, reserved and forgiven. */
interface Money {
  readonly from: number;
  readonly spans: Readonly<Record<string, Readonly<Record<string, [kind: string, ...microUsd: number[]]>>>>;
}

function countPast(database: DatabaseSync, { jobs, kept }: { jobs: number; kept: number }): void {
  const { json } = database.prepare("SELECT json FROM state").get() as { json: string };
  const state = JSON.parse(json) as State;
  const { windows, money } = state.payer;
  windows["day"] = pastCounts(windows["day"]?.[0] ?? 0, jobs);
  delete windows["minute"];
  state.payer.pruned = { ...money, spans: times(money.spans, jobs - 1 - kept) };
  const changed = { ...state, payer: { ...state.payer, money: { ...money, spans: times(money.spans, jobs) } } };
  changed.ended.known += kept;
  database.prepare("UPDATE state SET json = ?").run(JSON.stringify(changed));
}

function times(spans: Money["spans"], factor: number): Money["spans"] {
  const entry = ([kind, ...amounts]: [string, ...number[]]) => [kind, ...amounts.map((amount) => amount * factor)];
  const models = (byModel: Money["spans"][string]) =>
    Object.fromEntries(Object.entries(byModel).map(([name, amounts]) => [name, entry(amounts)]));
  return Object.fromEntries(Object.entries(spans).map(([span, byModel]) => [span, models(byModel)])) as Money["spans"];
}

/** The newest slot of the day, then the place and the count of each. */
function pastCounts(newest: number, jobs: number): number[] {
  const counts = new Map<number, number>();
  for (let n = 0; n < jobs; n++) {
    const place = (newest - (n % pastSlots)) % slots;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return [newest, ...[...counts].flat()];
}
