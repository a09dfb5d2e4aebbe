// The gateway wakes days later: its clock is ahead, and the alarms of its objects ring as if those days had passed.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ServeOptions, Server } from "../support/serve.ts";
import { eventually } from "../support/serve-eventually.ts";
import { tortureDoor } from "./door.ts";

/** What rang may have begun something. */
const restMs = 2_000;
/** What rings so soon belongs to what rings now: a webhook is tried again after ten seconds. */
const soonMs = 12_000;

export class TimeTravel {
  readonly #server: Server;
  readonly #options: ServeOptions;
  #aheadMs = 0;

  constructor(server: Server, options: ServeOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** As the gateway reads it. */
  get now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** The server dies and wakes so much later. */
  async sleep(ms: number): Promise<void> {
    await this.#server.kill9();
    this.#aheadMs += ms;
    for (const { folder, database } of this.#alarms()) {
      for (const { actor_id } of database.prepare("SELECT actor_id FROM _cf_ALARM").all()) {
        shiftOwn(join(folder, `${actor_id}.sqlite`), ms);
      }
      database.prepare("UPDATE _cf_ALARM SET scheduled_time = scheduled_time - ?").run(nanoseconds(ms));
      database.close();
    }
    await this.#server.deploy({ ...this.#options, door: await tortureDoor(this.#aheadMs) });
  }

  /** Until every alarm that was due, or was to be soon, has rung. Of jobs that go on there is always one to be asked about. */
  async quiet(withinMs: number): Promise<void> {
    const soon = Date.now() + soonMs;
    let quietSince = Date.now();
    await eventually("the end of the alarms that are due", withinMs, async () => {
      if (this.#dueBy(soon) > 0) quietSince = Date.now();
      return Date.now() - quietSince > restMs;
    });
  }

  #dueBy(at: number): number {
    return this.#alarms().reduce((sum, { database }) => {
      const query = "SELECT COUNT(*) AS due FROM _cf_ALARM WHERE scheduled_time <= ?";
      const row = database.prepare(query).get(nanoseconds(at));
      database.close();
      return sum + Number(row?.["due"]);
    }, 0);
  }

  /** What the runtime keeps beside the objects of each class. */
  #alarms(): { readonly folder: string; readonly database: DatabaseSync }[] {
    const folders = readdirSync(this.#server.disk).map((name) => join(this.#server.disk, name));
    const withAlarms = folders.filter((folder) => existsSync(join(folder, "metadata.sqlite")));
    return withAlarms.map((folder) => ({ folder, database: new DatabaseSync(join(folder, "metadata.sqlite")) }));
  }
}

const nanoseconds = (ms: number) => BigInt(Math.round(ms)) * 1_000_000n;

/** An object notes its own alarm too, where it was not emptied in the moment that it died. */
function shiftOwn(file: string, ms: number): void {
  if (!existsSync(file)) return;
  const database = new DatabaseSync(file);
  const notes = database.prepare("SELECT 1 FROM sqlite_master WHERE name = '_cf_METADATA'").get();
  if (notes) database.prepare("UPDATE _cf_METADATA SET value = value - ? WHERE key = 1").run(nanoseconds(ms));
  database.close();
}
