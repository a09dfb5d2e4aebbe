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
  copyRow(database, "ended", Math.min(copies, keptJobs), {
    ...{ admission, upstreamId: "upstreamId || '-' || n", idempotencyKey: "'past-' || n" },
    ...{ admittedAt: earlier("admittedAt"), endedAt: earlier("endedAt") },
  });
  copyRow(database, "idempotency", copies, {
    ...{ admission, key: "'past-' || n", upstreamId: "upstreamId || '-' || n", expiresAt: earlier("expiresAt") },
  });
  copyRow(database, "media", copies, {
    key: "lower(hex(randomblob(16))) || substr(key, 33)",
    ...{ completedAt: earlier("completedAt"), expiresAt: earlier("expiresAt") },
  });
  plantState(database, jobs);
}

interface State {
  readonly payer: {
    readonly windows: Record<string, number[]>;
    readonly money: { readonly spans: Record<string, Record<string, [string, ...number[]]>> };
    readonly pruned: { readonly spans: Record<string, Record<string, [string, ...number[]]>> };
  };
  readonly ended: { known: number; assumed: number };
}

/** What so many jobs count for, most of whose rows are gone. */
function plantState(database: DatabaseSync, jobs: number): void {
  const { json } = database.prepare("SELECT json FROM state").get() as { json: string };
  const state = JSON.parse(json) as State;
  const { money, pruned, windows } = state.payer;
  const gone = Math.max(0, jobs - 1 - keptJobs);
  for (const [span, models] of Object.entries(money.spans)) {
    const times = (factor: number) =>
      Object.fromEntries(
        Object.entries(models).map(([model, [kind, ...amounts]]): [string, [string, ...number[]]] => {
          return [model, [kind, ...amounts.map((amount) => amount * factor)]];
        }),
      );
    if (gone > 0) pruned.spans[span] = times(gone);
    money.spans[span] = times(jobs);
  }
  state.ended.known += Math.min(jobs - 1, keptJobs);
  countRequests(windows, jobs);
  database.prepare("UPDATE state SET json = ?").run(JSON.stringify(state));
}

/** In the day's window; the minute's is empty again. */
function countRequests(windows: Record<string, number[]>, jobs: number): void {
  const [newest = 0] = windows["day"] ?? [];
  const counts = new Uint32Array(slots);
  for (let n = 0; n < jobs; n++) {
    const slot = (newest - (n % pastSlots)) % slots;
    counts[slot] = (counts[slot] ?? 0) + 1;
  }
  windows["day"] = [newest, ...counts.entries()].flat();
  delete windows["minute"];
}
