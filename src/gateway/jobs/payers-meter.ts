// The payer's meter as the relay calls it. Idempotent calls are repeated if they fail. What is not urgent (`bind`) goes
// along with another call.

import { type Remote, repeated } from "../../durable/remote.ts";
import { nameOfFault, Problem } from "../../errors.ts";
import type {
  AdmitAnswer,
  AdmitRequest,
  Amendment,
  Binding,
  Ending,
  HandedOut,
  Hit,
  KnownEnd,
  MeteredJob,
  Metering,
  Refusal,
  Settled,
} from "../quota/metering.ts";
import { pendingBinds } from "./pending-binds.ts";
import { setQuota } from "./quota-headers.ts";

export type Admitted = Exclude<AdmitAnswer, Refusal>;

/** Learns how long a caller waited for the meter. */
type Timed = <T>(asked: Promise<T>) => Promise<T>;

export class PayersMeter {
  readonly #payer: string;
  /** A new stub each time: one that lost a call may be broken. */
  readonly #stub: () => Remote<Metering>;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  readonly #timed: Timed;

  constructor(
    payer: string,
    stub: () => Remote<Metering>,
    waitUntil: (work: Promise<unknown>) => void,
    timed: Timed = (asked) => asked,
  ) {
    this.#payer = payer;
    this.#stub = stub;
    this.#waitUntil = waitUntil;
    this.#timed = timed;
  }

  /** Throws if a rule refuses the request, and if the meter cannot be reached: without a meter nothing is admitted. */
  async admit(request: AdmitRequest): Promise<Admitted> {
    const binds = pendingBinds.take(this.#payer);
    try {
      const asked = this.#stub().admit(binds.length === 0 ? request : { ...request, binds });
      return admittedOr(await this.#timed(asked));
    } catch (error) {
      if (error instanceof Problem) throw error;
      this.#keep(binds);
      // It may have been admitted, and only the answer was lost.
      this.release(request.admission);
      throw meterAway();
    }
  }

  async amend(admission: string, amendment: Amendment): Promise<void> {
    try {
      admittedOr(await this.#timed(this.#stub().amend(admission, amendment)));
    } catch (error) {
      throw error instanceof Problem ? error : meterAway();
    }
  }

  /** Told with the payer's next call, or within a second. */
  bind(binding: Binding | Ending): void {
    this.#keep([binding]);
  }

  /** A client that repeats its call is to find the job. */
  bindAtOnce(binding: Binding): void {
    this.#tell((meter) => meter.bind([binding]));
  }

  /** Awaited before the retry is answered: from then on the job's end settles the retry, not the earlier run. */
  async bindRetry(binding: Binding): Promise<void> {
    try {
      await this.#repeated((meter) => meter.bind([binding]));
    } catch {
      this.#keep([binding]);
    }
  }

  /** The upstream never had it. */
  release(admission: string): Promise<void> {
    return this.#tell((meter) => meter.release(admission));
  }

  /** It is unknown whether the upstream has the job. */
  doubt(admission: string): void {
    this.#tell((meter) => meter.doubt(admission));
  }

  async settle(ending: Ending): Promise<Settled> {
    const binds = pendingBinds.take(this.#payer);
    try {
      return await this.#repeated((meter) => (binds.length === 0 ? meter.settle(ending) : meter.settle(ending, binds)));
    } catch (error) {
      this.#keep(binds);
      throw error;
    }
  }

  notify(admission: string, body: string): Promise<void> {
    return this.#repeated((meter) => meter.notify(admission, body));
  }

  /**
   * If only the meter's answer was lost, the repeated call counts the text twice. The charge is still bounded by the
   * reservation.
   */
  async handOut(admission: string, handed: HandedOut): Promise<void> {
    try {
      await this.#repeated((meter) => meter.handOut(admission, handed));
    } catch {
      throw meterAway();
    }
  }

  /** A notice said that the job ended, but its status does not say so yet: the meter's alarm asks again soon. */
  lookAgain(binding: Binding): Promise<void> {
    return this.#repeated((meter) => meter.lookAgain(binding));
  }

  /**
   * Counts an answer from the cache. If the meter cannot be reached, the hit is given anyway, since it costs no money;
   * with an idempotency key it is refused, since the key may stand for another call.
   */
  async countHit(hit: Hit): Promise<Admitted | "removed" | undefined> {
    try {
      const answer = await this.#timed(this.#repeated((meter) => meter.countHit(hit)));
      return answer === "removed" ? answer : admittedOr(answer);
    } catch (error) {
      if (error instanceof Problem) throw error;
      if (hit.named) throw meterAway();
      console.warn(JSON.stringify({ gallery: "a link is not listed", error: nameOfFault(error) }));
      return undefined;
    }
  }

  job(admission: string): Promise<MeteredJob | undefined> {
    return this.#stub().job(admission);
  }

  /** Undefined where it cannot be reached, too. */
  lastWord(names: readonly string[]): Promise<KnownEnd | undefined> {
    return this.#stub()
      .lastWord(names)
      .catch(() => undefined);
  }

  async openJobs(owner: string, model: string, count: number): Promise<MeteredJob[]> {
    await this.#bindTaken();
    return this.#stub().openJobs(owner, model, count);
  }

  async jobs(owner: string, model: string, offset: number, count: number) {
    await this.#bindTaken();
    return this.#stub().jobs(owner, model, offset, count);
  }

  /** Before jobs are listed, so that those of a moment ago have their ids. */
  async #bindTaken(): Promise<void> {
    const binds = pendingBinds.take(this.#payer);
    if (binds.length === 0) return;
    try {
      await this.#stub().bind(binds);
    } catch (error) {
      this.#keep(binds);
      throw error;
    }
  }

  #keep(binds: readonly (Binding | Ending)[]): void {
    if (binds.length === 0 || !pendingBinds.add(this.#payer, binds, Date.now())) return;
    this.#waitUntil(scheduler.wait(pendingBinds.flushMs).then(() => this.#flush()));
  }

  async #flush(): Promise<void> {
    const binds = pendingBinds.flush(this.#payer);
    if (binds.length === 0) return;
    try {
      await this.#repeated((meter) => meter.bind(binds));
    } catch (error) {
      // They wait for the payer's next call; the upstream's notice brings the id, too.
      pendingBinds.add(this.#payer, binds, Date.now());
      logUnsettled(error);
    }
  }

  /** Calls the meter in the background: the caller need not await it. */
  #tell(ask: (meter: Remote<Metering>) => Promise<unknown>): Promise<void> {
    const told = this.#repeated(ask).then(() => {}, logUnsettled);
    this.#waitUntil(told);
    return told;
  }

  #repeated<T>(ask: (meter: Remote<Metering>) => Promise<T>): Promise<T> {
    return repeated(() => ask(this.#stub()));
  }
}

function admittedOr(answer: AdmitAnswer): Admitted {
  if (!("code" in answer)) return answer;
  const headers = new Headers();
  if (answer.retryAfterSeconds !== undefined) headers.set("Retry-After", String(answer.retryAfterSeconds));
  setQuota(headers, answer.quota);
  throw new Problem(answer.code, answer.detail, Object.fromEntries(headers));
}

function meterAway(): Problem {
  return new Problem("METER_UNAVAILABLE", "Your quota cannot be checked at the moment.", { "Retry-After": "1" });
}

/** The meter's own alarm asks the upstream about a job, and assumes what an OpenAI call cost, which has no id to ask by. */
export function logUnsettled(error: unknown): void {
  console.warn(JSON.stringify({ settle: "left to the meter's alarm", error: nameOfFault(error) }));
}
