// Client webhooks that are owed: written once a job, sent until received or given up.
import { limits } from "../../contract/limits.ts";
import { Bodies } from "./bodies.ts";
import { NextDue } from "./next-due.ts";
import type { Tables } from "./tables.ts";

export interface Notice extends Record<string, SqlStorageValue> {
  admission: string;
  url: string;
  tries: number;
  dueAt: number;
}

/** To be delivered now. */
export interface Claimed extends Notice {
  bytes: number;
}

const { tries: maxTries, delayMs, timeoutMs } = limits.webhook;

export class Outbox {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  readonly #bodies: Bodies;
  readonly #due: NextDue;
  /** Looked for once while nothing changes: thousands may wait for one host. */
  #nextOfOthers: { readonly than: string; readonly dueAt: number | undefined } | undefined;

  constructor(sql: SqlStorage, tables: Tables, dueAt: number | undefined) {
    this.#sql = sql;
    this.#tables = tables;
    this.#bodies = new Bodies(sql, "outbox_bodies");
    this.#due = new NextDue(sql, "outbox", dueAt);
  }

  add(admission: string, url: string, body: string | Uint8Array, now: number): void {
    this.#tables.need("outbox");
    this.#sql.exec("INSERT INTO outbox (admission, url, tries, dueAt) VALUES (?, ?, 0, ?)", admission, url, now);
    this.#due.added(now);
    this.#nextOfOthers = undefined;
    this.#bodies.add(admission, body);
  }

  body(admission: string): Uint8Array {
    return this.#bodies.read(admission);
  }

  /**
   * Takes what is due first, of none of those hosts. A try counts before it is made: a crash in the middle costs a try,
   * never a second storm. A body that is larger than the room there is waits.
   */
  claim(now: number, withoutHosts: readonly string[], roomBytes: number): Claimed | "too large" | undefined {
    if (!this.#due.isReached(now)) return undefined;
    const due = this.#first(withoutHosts, now);
    if (!due) return undefined;
    if (due.tries >= maxTries) {
      this.#remove(due.admission);
      return this.claim(now, withoutHosts, roomBytes);
    }
    const bytes = this.#bodies.bytesOf(due.admission);
    if (bytes > roomBytes) return "too large";
    const tried = { ...due, tries: due.tries + 1, dueAt: now + timeoutMs + delayMs, bytes };
    this.#sql.exec(
      "UPDATE outbox SET tries = ?, dueAt = ? WHERE admission = ?",
      tried.tries,
      tried.dueAt,
      due.admission,
    );
    this.#changed();
    return tried;
  }

  /** No try was made. */
  giveBack({ admission }: Notice, now: number): void {
    this.#sql.exec("UPDATE outbox SET tries = tries - 1, dueAt = ? WHERE admission = ?", now + delayMs, admission);
    this.#changed();
  }

  /** Of a try that was overtaken by the next one, no try is forgotten. */
  settle({ admission, tries }: Notice, received: boolean, now: number): void {
    if (received || tries >= maxTries) {
      this.#remove(admission);
    } else {
      this.#sql.exec("UPDATE outbox SET dueAt = ? WHERE admission = ?", now + delayMs, admission);
      this.#changed();
    }
  }

  hurry(now: number): void {
    this.#nextOfOthers = undefined;
    this.#due.hurry(now);
  }

  #remove(admission: string): void {
    this.#sql.exec("DELETE FROM outbox WHERE admission = ?", admission);
    this.#bodies.remove(admission);
    this.#changed();
  }

  /** Of what is owed to other hosts than those. */
  nextDue(withoutHosts: readonly string[] = []): number | undefined {
    if (this.#due.at === undefined || withoutHosts.length === 0) return this.#due.at;
    const than = withoutHosts.join(" ");
    if (this.#nextOfOthers?.than !== than) this.#nextOfOthers = { than, dueAt: this.#first(withoutHosts)?.dueAt };
    return this.#nextOfOthers.dueAt;
  }

  #first(withoutHosts: readonly string[], dueBy = Number.MAX_SAFE_INTEGER): Notice | undefined {
    const others = withoutHosts.map(() => "AND substr(url, 1, ?) <> ?").join(" ");
    const query = `SELECT * FROM outbox WHERE dueAt <= ? ${others} ORDER BY dueAt LIMIT 1`;
    const hosts = withoutHosts.flatMap((host) => [host.length, host]);
    return this.#sql.exec<Notice>(query, dueBy, ...hosts).toArray()[0];
  }

  #changed(): void {
    this.#nextOfOthers = undefined;
    this.#due.read();
  }
}
