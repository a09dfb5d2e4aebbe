// Reads CONTROL for an isolate: in front of a request only where what is known has become too old.
import { Problem } from "../../errors.ts";
import { inTime } from "../../wire/in-time.ts";
import { oncePer } from "../../wire/once-per.ts";
import { isRecent } from "../../wire/recent.ts";
import { answersWithinMs, type Remote, remote } from "../../wire/remote.ts";
import type { GatewayContext } from "../env.ts";
import type { Control } from "./control.ts";
import { type ControlChanges, ControlView } from "./control-view.ts";

/** A revocation counts everywhere after this long. */
const freshMs = 20_000;
/** From here on it is read beside a request, so that a busy isolate never waits. */
const earlyMs = 10_000;
/** CONTROL cannot be reached: what is known counts this long in all, then nobody is let in. */
const graceMs = 60_000;
const timeoutMs = 2_000;
/** From a question that failed to the next one; a question that was not answered in time has used up most of it. */
const failurePauseMs = 2_500;

export type ReadChanges = (since: number) => Promise<ControlChanges | undefined>;
export type Defer = (work: Promise<unknown>) => void;

export class ControlReader {
  readonly #read: ReadChanges;
  #view = new ControlView();
  #readAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(read: ReadChanges) {
    this.#read = read;
  }

  /** No promise where what is known is fresh. */
  current(now: number, defer: Defer): ControlView | Promise<ControlView> {
    if (!isRecent(this.#readAt, freshMs, now)) return this.#wait(now);
    const isAsked = isRecent(this.#askedAt, timeoutMs, now);
    if (!isRecent(this.#readAt, earlyMs, now) && !isAsked) defer(this.#renew(now).catch(() => undefined));
    return this.#view;
  }

  /** The operator changed something through this isolate: the next request reads it. */
  outdate(): void {
    this.#readAt -= freshMs;
  }

  async #wait(now: number): Promise<ControlView> {
    const refuse = () => {
      if (isRecent(this.#readAt, graceMs, now)) return this.#view;
      throw new Problem("CONTROL_UNAVAILABLE", "Whether the token was revoked cannot be told.", retrySoon);
    };
    if (isRecent(this.#failedAt, failurePauseMs, now)) return refuse();
    return this.#renew(now).then(() => this.#view, refuse);
  }

  /** As old as the question, not as the answer. Concurrent calls each ask: a promise belongs to its request. */
  async #renew(now: number): Promise<void> {
    this.#askedAt = now;
    try {
      const changes = await inTime(timeoutMs, this.#read(this.#view.version));
      if (changes) this.#view.apply(changes, now);
      this.#readAt = now;
    } catch (error) {
      this.#failedAt = now;
      console.error(JSON.stringify({ binding: "CONTROL", problem: String(error) }));
      throw error;
    }
  }
}

const retrySoon = { "Retry-After": "3" };

function controlOf(env: Env): Remote<Control> {
  return remote<Control>(env.CONTROL, "control", answersWithinMs.needed);
}

/** What the operator asks of it, or changes: said twice, it is the same. */
export async function askControl<T>(env: Env, ask: (control: Remote<Control>) => Promise<T>): Promise<T> {
  try {
    return await ask(controlOf(env));
  } catch {
    throw new Problem("CONTROL_UNAVAILABLE", "What the operator sets cannot be reached.", retrySoon);
  } finally {
    controlReaderOf(env).outdate();
  }
}

export const controlReaderOf = oncePer(
  (env: Env) => new ControlReader(async (since) => controlOf(env).snapshot(since)),
);

export function readControl(c: GatewayContext): ControlView | Promise<ControlView> {
  return controlReaderOf(c.env).current(c.get("exchange").startedAt, (work) => c.executionCtx.waitUntil(work));
}

/** With what was changed a moment ago in another isolate. */
export function readControlAnew(c: GatewayContext): ControlView | Promise<ControlView> {
  controlReaderOf(c.env).outdate();
  return readControl(c);
}
