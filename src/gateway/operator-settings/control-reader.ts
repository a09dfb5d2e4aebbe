// Reads CONTROL for an isolate, beside its requests. Where what is known has become too old, KV's copy tells the request in
// hand, unless CONTROL does so first: no request waits for an object that lies far away.
import { answersWithinMs, type Remote, remote } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import { inTime } from "../../isolate/in-time.ts";
import { memoizeBy } from "../../isolate/memoize-by.ts";
import { isRecent } from "../../isolate/recent.ts";
import type { Call } from "../call.ts";
import type { Control } from "./control.ts";
import { readSnapshot } from "./control-snapshot.ts";
import { type ControlChanges, ControlView } from "./control-view.ts";

/** A revocation counts in every isolate after this long, and in one that goes by KV's copy after KV's own delay besides. */
const freshMs = 20_000;
/** From here on it is read beside a request, so that a busy isolate never waits. */
const earlyMs = 10_000;
/** If CONTROL cannot be reached, the last known settings count this long; then no request is accepted. */
const graceMs = 60_000;
const timeoutMs = 2_000;
/** From a question that failed to the next one; a question that was not answered in time has used up most of it. */
const failurePauseMs = 2_500;

export type ReadChanges = (since: number) => Promise<ControlChanges | undefined>;
/** What KV tells of CONTROL; undefined where it tells nothing. */
export type ReadCopy = () => Promise<ControlChanges | undefined>;
export type Defer = (work: Promise<unknown>) => void;

export class ControlReader {
  readonly #read: ReadChanges;
  readonly #readCopy: ReadCopy;
  #view = new ControlView();
  #readAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Since when KV's copy is gone by, and CONTROL has not been read. */
  #copiedAt: number | undefined;
  /** Changes that were made through this isolate, and how many of them are read. */
  #changes = { made: 0, read: 0 };

  constructor(read: ReadChanges, readCopy: ReadCopy = async () => undefined) {
    this.#read = read;
    this.#readCopy = readCopy;
  }

  /** No promise where what is known is fresh. */
  current(now: number, defer: Defer): ControlView | Promise<ControlView> {
    if (this.#changes.read < this.#changes.made) return this.#wait(now);
    if (isRecent(this.#readAt, freshMs, now)) {
      if (!isRecent(this.#readAt, earlyMs, now)) this.#renewBeside(now, defer);
      return this.#view;
    }
    if (!this.#mayGoByCopy(now)) return this.#wait(now);
    if (this.#copiedAt === undefined) return this.#catchUp(now, defer);
    this.#renewBeside(now, defer);
    return this.#view;
  }

  /** Only so long without CONTROL: it may be that nobody can be revoked. */
  #mayGoByCopy(now: number): boolean {
    if (this.#copiedAt !== undefined && this.#copiedAt > now) this.#copiedAt = undefined;
    return this.#copiedAt === undefined || isRecent(this.#copiedAt, freshMs, now);
  }

  #renewBeside(now: number, defer: Defer): void {
    if (!isRecent(this.#askedAt, timeoutMs, now)) defer(this.#renew(now).catch(() => undefined));
  }

  /** The operator changed something through this isolate: the next request reads it. */
  invalidate(): void {
    this.#changes.made++;
  }

  /** CONTROL and KV are asked at once, and who answers first tells this request; CONTROL goes on beside it. */
  async #catchUp(now: number, defer: Defer): Promise<ControlView> {
    const asked = this.#ask(now);
    defer(asked.catch(() => undefined));
    await Promise.any([asked, this.#copy(now)]).catch(() => this.#lastKnown(now));
    return this.#view;
  }

  /** An older copy changes nothing of what is known, and shows all the same that nothing newer was told so far. */
  async #copy(now: number): Promise<void> {
    const copy = await this.#readCopy();
    if (isRecent(this.#readAt, freshMs, now)) return;
    if (!copy) throw new Error("no copy");
    this.#view.apply(copy, now);
    this.#copiedAt ??= now;
  }

  async #wait(now: number): Promise<ControlView> {
    return this.#ask(now).then(
      () => this.#view,
      () => this.#lastKnown(now),
    );
  }

  #lastKnown(now: number): ControlView {
    if (isRecent(this.#readAt, graceMs, now)) return this.#view;
    throw new Problem("CONTROL_UNAVAILABLE", "Whether the token was revoked cannot be told.", retrySoon);
  }

  async #ask(now: number): Promise<void> {
    if (isRecent(this.#failedAt, failurePauseMs, now)) throw new Error("failed a moment ago");
    await this.#renew(now);
  }

  /**
   * The settings are as old as the question, not the answer. Concurrent requests each ask: in Workers a promise belongs
   * to the request that made it.
   */
  async #renew(now: number): Promise<void> {
    this.#askedAt = now;
    const { made } = this.#changes;
    try {
      const changes = await inTime(timeoutMs, this.#read(this.#view.version));
      if (changes) this.#view.apply(changes, now);
      this.#readAt = now;
      this.#copiedAt = undefined;
      this.#changes.read = Math.max(this.#changes.read, made);
    } catch (error) {
      this.#failedAt = now;
      console.error(JSON.stringify({ binding: "CONTROL", problem: String(error) }));
      throw error;
    }
  }
}

const retrySoon = { "Retry-After": "3" };

/** The only one of its kind. */
export const controlName = "control";

function controlOf(env: Env): Remote<Control> {
  return remote<Control>(env.CONTROL, controlName, answersWithinMs.needed);
}

/** What the operator asks of it, or changes: said twice, it is the same. */
export async function askControl<T>(env: Env, ask: (control: Remote<Control>) => Promise<T>): Promise<T> {
  try {
    return await ask(controlOf(env));
  } catch {
    throw new Problem("CONTROL_UNAVAILABLE", "What the operator sets cannot be reached.", retrySoon);
  } finally {
    controlReaderOf(env).invalidate();
  }
}

export const controlReaderOf = memoizeBy(
  (env: Env) =>
    new ControlReader(
      async (since) => controlOf(env).snapshot(since),
      () => readSnapshot(env.IMAGES),
    ),
);

export function readControl(call: Call): ControlView | Promise<ControlView> {
  return controlReaderOf(call.env).current(call.exchange.startedAt, (work) => call.waitUntil(work));
}

/** With what was changed a moment ago in another isolate. */
export function readControlAnew(call: Call): ControlView | Promise<ControlView> {
  controlReaderOf(call.env).invalidate();
  return readControl(call);
}
