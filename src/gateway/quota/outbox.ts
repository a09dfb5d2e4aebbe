// Client webhooks that are owed: written once a job, sent until received or given up.
import { limits } from "../../contract/limits.ts";
import { concat } from "../../json/concat.ts";
import { Bodies } from "./bodies.ts";
import { NextDue } from "./next-due.ts";
import type { Tables } from "./tables.ts";

export interface Notice extends Record<string, SqlStorageValue> {
  admission: string;
  url: string;
  /** Those that came to an end. */
  tries: number;
  /** Begun tries, those included during which the object died. */
  begun: number;
  dueAt: number;
}

/** To be delivered now. */
export interface Claimed extends Notice {
  bytes: number;
}

const encoder = new TextEncoder();
const closing = 0x7d;
/** Where an input lies beside the bodies. */
const inputOf = (admission: string) => `${admission}/input`;
const { tries: maxTries, delayMs, timeoutMs } = limits.webhook;
/**
 * If the object dies during a try, the try is repeated, since it may not have been made. This bounds the repetitions: a
 * body whose delivery kills the object every time is given up.
 */
const maxBegun = 2 * maxTries;

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

  /** Until the webhook's body is there, and of a job that failed until nobody can retry it. */
  keepInput(admission: string, input: string): void {
    this.#tables.need("outbox");
    this.#bodies.add(inputOf(admission), input);
  }

  hasInput(admission: string): boolean {
    return this.#tables.has("outbox") && this.#bodies.bytesOf(inputOf(admission)) > 0;
  }

  forgetInput(admission: string): void {
    if (this.#tables.has("outbox")) this.#bodies.remove(inputOf(admission));
  }

  /** A retry's webhook carries the input of the job that it runs again. */
  handInput(admission: string, retry: string): void {
    if (!this.#tables.has("outbox")) return;
    const hand = "UPDATE outbox_bodies SET admission = ? WHERE admission = ?";
    this.#sql.exec(hand, inputOf(retry), inputOf(admission));
  }

  /**
   * Beside the job's answer it carries what the contract's does: the client's own URL, and the input if it was kept.
   * Returns whether it was.
   */
  add(admission: string, url: string, answer: string | Uint8Array, now: number): boolean {
    this.#tables.need("outbox");
    const given = typeof answer === "string" ? encoder.encode(answer) : answer;
    const input = this.#bodies.read(inputOf(admission));
    const open = given.subarray(0, given.lastIndexOf(closing));
    const comma = open.length > 1 ? "," : "";
    const tail = encoder.encode(`${comma}"webhook":${JSON.stringify(url)}${input.byteLength > 0 ? ',"input":' : ""}`);
    const body = concat([open, tail, input, encoder.encode("}")]);
    // In its normal form: rows of one receiver are found by how their URLs begin.
    const { href } = new URL(url);
    this.#sql.exec("INSERT INTO outbox (admission, url, tries, dueAt) VALUES (?, ?, 0, ?)", admission, href, now);
    this.#due.added(now);
    this.#nextOfOthers = undefined;
    this.#bodies.add(admission, body);
    return input.byteLength > 0;
  }

  body(admission: string): Uint8Array {
    return this.#bodies.read(admission);
  }

  /** Takes what is due first, of none of those hosts. A body that is larger than the room there is waits. */
  claim(now: number, withoutHosts: readonly string[], roomBytes: number): Claimed | "too large" | undefined {
    if (!this.#due.isReached(now)) return undefined;
    this.#tables.need("outbox_begun");
    const due = this.#first(withoutHosts, now);
    if (!due) return undefined;
    if (due.tries >= maxTries || due.begun >= maxBegun) {
      this.#remove(due.admission);
      return this.claim(now, withoutHosts, roomBytes);
    }
    const bytes = this.#bodies.bytesOf(due.admission);
    if (bytes > roomBytes) return "too large";
    const dueAt = now + timeoutMs + delayMs;
    this.#sql.exec("UPDATE outbox SET begun = begun + 1, dueAt = ? WHERE admission = ?", dueAt, due.admission);
    this.#changed();
    return { ...due, begun: due.begun + 1, dueAt, bytes };
  }

  /** No try was made. */
  giveBack({ admission, begun }: Notice, now: number): void {
    const back = "UPDATE outbox SET begun = begun - 1, dueAt = ? WHERE admission = ? AND begun >= ?";
    this.#sql.exec(back, now + delayMs, admission, begun);
    this.#changed();
  }

  /** Also of a try that was overtaken by the next one. One of a body that was dropped since says nothing of the next body. */
  settle({ admission, begun }: Notice, received: boolean, now: number): void {
    const count = "UPDATE outbox SET tries = tries + 1, dueAt = ? WHERE admission = ? AND begun >= ? RETURNING tries";
    const [row] = this.#sql.exec<{ tries: number }>(count, now + delayMs, admission, begun).toArray();
    if (row && (received || row.tries >= maxTries)) this.#remove(admission);
    else this.#changed();
  }

  /** What it tells was not true. */
  drop(admission: string): void {
    if (this.#tables.has("outbox")) this.#remove(admission);
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
