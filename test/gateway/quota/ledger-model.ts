// The model of a meter: money, open jobs and keys, worked out from the rules' words and no code of theirs.
import fc from "fast-check";
import { expect } from "vitest";
import type { JobState } from "../../../src/contract/states.ts";
import { newAdmission } from "../../../src/gateway/admission.ts";
import type { AdmitRequest, UpstreamAnswer } from "../../../src/gateway/quota/metering.ts";
import { plansText } from "../../../src/gateway/quota/plans.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import type { Rule } from "../../../src/gateway/rules.ts";
import { codeOf, request } from "./admissions.ts";
import { newWorld, type World, wake } from "./planted-meter.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const jobsLimit = 6;
const dayLimit = 400_000;
const requestsLimit = 4;
const plan: Rule[] = [
  { unit: "jobs", limit: jobsLimit },
  { unit: "usd", limit: dayLimit / 1e6, per: "day" },
  { unit: "requests", limit: requestsLimit, per: "minute" },
];

/** Half an hour to midnight, at the end of a month. */
const start = Date.UTC(2031, 0, 31, 23, 30);

const job = fc.nat({ max: 11 });
const cost = fc.oneof(
  { weight: 4, arbitrary: fc.nat({ max: 60_000 }) },
  fc.constantFrom<unknown>(null, undefined, -1, Number.NaN, Number.POSITIVE_INFINITY, "0.02", {}, 50_000_000, 0.4),
);
const final = fc.constantFrom<JobState>("COMPLETED", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT");
const pause = fc.constantFrom(
  1,
  700,
  5 * secondMs,
  31 * secondMs,
  3 * minuteMs,
  11 * minuteMs,
  40 * minuteMs,
  9 * hourMs,
);

export type Command =
  | { do: "admit"; reserve: number; ttl: number; sync: boolean; key: number; fingerprint: number; again: boolean }
  | { do: "bind" | "release" | "retry"; job: number }
  | { do: "settle"; job: number; status: JobState; cost: unknown; withRef: boolean; times: number }
  | { do: "upstream"; job: number; says: JobState | "unknown" | "unreachable"; cost: unknown }
  | { do: "budget"; reachable: boolean }
  | { do: "pass"; ms: number; alarm: boolean }
  | { do: "evict" };

export const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant("admit" as const),
        reserve: fc.constantFrom(0, 1, 20_000, 90_000),
        ttl: fc.constantFrom(10 * secondMs, hourMs, dayMs),
        sync: fc.boolean(),
        key: fc.nat({ max: 4 }),
        fingerprint: fc.nat({ max: 1 }),
        again: fc.boolean(),
      }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("bind" as const), job }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("release" as const, "retry" as const), job }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("settle" as const),
        ...{ job, status: final, cost, withRef: fc.boolean(), times: fc.integer({ min: 1, max: 3 }) },
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("upstream" as const),
        ...{ job, cost, says: fc.oneof(final, fc.constantFrom("IN_QUEUE", "IN_PROGRESS", "unknown", "unreachable")) },
      }) as fc.Arbitrary<Command>,
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: pause, alarm: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("budget" as const), reachable: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant({ do: "evict" as const }) },
  ),
  { minLength: 4, maxLength: 30 },
);

interface Known {
  readonly asked: AdmitRequest;
  readonly at: number;
  ref: string | undefined;
  seen: JobState | undefined;
  state: "open" | "ended" | "released";
  charge: number;
  assumed: boolean;
  truth: UpstreamAnswer;
}

export class Ledger {
  readonly #state: DurableObjectState;
  readonly #world: World = newWorld(start);
  readonly #jobs: Known[] = [];
  readonly #keys = new Map<string, { job: Known; until: number }>();
  #meter: UserMeter;
  #budget = true;
  #count = 0;

  constructor(state: DurableObjectState) {
    this.#state = state;
    this.#world.ask = async ({ admission }) => this.#answer(admission);
    this.#world.lease = () =>
      this.#budget ? { granted: true, allowanceMicroUsd: null, leaseMs: minuteMs } : undefined;
    this.#meter = wake(state, this.#world);
  }

  async run(command: Command): Promise<void> {
    switch (command.do) {
      case "admit":
        return this.#admit(command);
      case "bind":
        return this.#with(command.job, (known) => this.#bind(known, `ref-${known.asked.admission}`));
      case "release":
        return this.#with(command.job, (known) => this.#release(known));
      case "retry":
        return this.#retry(this.#jobs[command.job]);
      case "settle":
        return this.#with(command.job, (known) => {
          for (let time = 0; time < command.times; time++) this.#settle(known, command);
        });
      case "upstream":
        return this.#with(command.job, (known) => {
          const { says, cost } = command;
          const final = { status: says as JobState, costMicroUsd: cost as number, completedAt: this.#world.now };
          known.truth = says === "unknown" || says === "unreachable" ? says : { ...final, body: "{}" };
        });
      case "budget":
        this.#budget = command.reachable;
        return;
      case "pass":
        this.#world.now += command.ms;
        return command.alarm ? this.#ring() : undefined;
      case "evict":
        this.#meter = wake(this.#state, this.#world);
    }
  }

  #with(at: number, act: (known: Known) => void): void {
    const known = this.#jobs[at];
    if (known) act(known);
  }

  async #admit({ reserve, ttl, sync, key, fingerprint, again }: Extract<Command, { do: "admit" }>): Promise<void> {
    const asked = request({
      ...{
        admission: this.#newAdmission(),
        plan: "tested",
        planFrom: "token",
        plans: plansText({ tested: plan }),
        reserveMicroUsd: reserve,
        ttlMs: ttl,
      },
      ...{ operation: sync ? "runsync" : "run", retentionMs: sync ? minuteMs : 30 * minuteMs },
      idempotency: key === 0 ? undefined : { key: `k${key}`, fingerprint: `f${fingerprint}` },
    });
    await this.#expectAdmitted(asked);
    if (again) await this.#meter.admit(asked);
  }

  async #retry(first: Known | undefined): Promise<void> {
    if (!first?.ref) return;
    const asked = {
      ...first.asked,
      admission: this.#newAdmission(),
      operation: "retry" as const,
      idempotency: undefined,
    };
    const known = await this.#expectAdmitted(asked);
    if (known) this.#bind(known, first.ref);
  }

  #newAdmission(): string {
    this.#count += 1;
    return newAdmission(this.#world.now, new Uint8Array([0, 0, 0, 0, 0, 0, this.#count >> 8, this.#count & 255]));
  }

  async #expectAdmitted(asked: AdmitRequest): Promise<Known | undefined> {
    const { now } = this.#world;
    const answer = await this.#meter.admit(asked);
    this.#noteExpiries();
    const code = codeOf(answer);
    const key = asked.idempotency?.key;
    const earlier = key === undefined ? undefined : this.#keys.get(key);
    if (earlier && earlier.until > now) {
      const same = earlier.job.asked.idempotency?.fingerprint === asked.idempotency?.fingerprint;
      if (!same) expect(code).toBe("IDEMPOTENCY_MISMATCH");
      else if (earlier.job.ref === undefined) expect(code).toBe("IN_PROGRESS");
      else
        expect(answer).toEqual({
          admitted: false,
          replay: { admission: earlier.job.asked.admission, ref: earlier.job.ref },
        });
      return undefined;
    }
    const since = (ms: number) => this.#jobs.filter(({ at }) => at > now - ms).length;
    if (answer.admitted) {
      expect(since(minuteMs)).toBeLessThan(requestsLimit);
      expect(this.#open().length).toBeLessThan(jobsLimit);
      const used = this.#usedOn(now) + asked.reserveMicroUsd;
      if (asked.reserveMicroUsd > 0) expect(used).toBeLessThanOrEqual(dayLimit);
      const known: Known = { asked, at: now, ref: undefined, seen: undefined, state: "open", ...unsettled };
      this.#jobs.push(known);
      if (key !== undefined) this.#keys.set(key, { job: known, until: now + dayMs });
      return known;
    }
    if (code === "RATE_LIMITED") expect(since(minuteMs + minuteMs / 50)).toBeGreaterThanOrEqual(requestsLimit);
    else if (code === "TOO_MANY_JOBS") expect(this.#open().length).toBeGreaterThanOrEqual(jobsLimit);
    else if (code === "QUOTA_EXCEEDED") expect(this.#usedOn(now) + asked.reserveMicroUsd).toBeGreaterThan(dayLimit);
    else expect([code, this.#budget]).toEqual(["METER_UNAVAILABLE", false]);
    return undefined;
  }

  #bind(known: Known, ref: string): void {
    this.#meter.bind(known.asked.admission, ref);
    if (known.state !== "released") known.ref = ref;
  }

  #release(known: Known): void {
    this.#meter.release(known.asked.admission);
    const isLost = known.state === "ended" && known.assumed && known.ref === undefined;
    if (known.state !== "open" && !isLost) return;
    known.state = "released";
    this.#free(known);
  }

  #free(known: Known): void {
    const key = known.asked.idempotency?.key;
    if (key !== undefined && this.#keys.get(key)?.job === known) this.#keys.delete(key);
  }

  #settle(named: Known, { status, cost, withRef }: Extract<Command, { do: "settle" }>): void {
    const ref = withRef ? (named.ref ?? `ref-${named.asked.admission}`) : null;
    const { admission } = named.asked;
    const at = { seenAt: this.#world.now, completedAt: this.#world.now };
    const meant = this.#meant(named, ref);
    this.#meter.settle({ admission, ref, status, costMicroUsd: cost as number, ...at });
    if (meant && meant.state !== "released") this.#end(meant, status, cost, ref, meant !== named);
  }

  /** The newest open admission of the upstream's job, else one whose charge was assumed, else the one that is named. */
  #meant(named: Known, ref: string | null): Known | undefined {
    if (named.state === "released") return undefined;
    const others = this.#jobs.filter((known) => ref !== null && known.ref === ref && known.state !== "released");
    return others.findLast(({ state }) => state === "open") ?? others.findLast(({ assumed }) => assumed) ?? named;
  }

  #end(known: Known, status: JobState, cost: unknown, ref: string | null, byAnother: boolean): void {
    if (known.ref === undefined && ref !== null) known.ref = ref;
    const { truth, charge } = chargeFor(status, cost, known.asked.reserveMicroUsd);
    if (known.state === "ended" && (!known.assumed || !truth)) return;
    Object.assign(known, { state: "ended", charge, assumed: !truth || (byAnother && charge === 0) });
    if (known.ref === undefined) this.#free(known);
  }

  #answer(admission: string): UpstreamAnswer {
    const known = this.#jobs.find(({ asked }) => asked.admission === admission);
    if (known?.state !== "open") throw new Error("asked about a job that is not open");
    expect(this.#expiry(known)).toBeGreaterThan(this.#world.now);
    const { truth } = known;
    if (truth === "unreachable") throw new Error("refused");
    if (truth === "unknown") this.#assume(known);
    else if (isFinal(truth.status)) this.#end(known, truth.status, truth.costMicroUsd, null, false);
    else known.seen = truth.status;
    return truth;
  }

  #assume(known: Known): void {
    const charge = known.seen === "IN_QUEUE" ? 0 : known.asked.reserveMicroUsd;
    Object.assign(known, { state: "ended", charge, assumed: true });
    if (known.ref === undefined) this.#free(known);
  }

  #expiry({ asked, at, ref }: Known): number {
    return at + (ref === undefined ? Math.min(asked.ttlMs, 10 * minuteMs) : asked.ttlMs + minuteMs);
  }

  /** An overdue reservation may be settled at any moment from now on. */
  #noteExpiries(): void {
    for (const known of this.#open()) {
      if (this.#expiry(known) > this.#world.now) continue;
      if (this.#meter.job(known.asked.admission)?.endedAt !== null) this.#assume(known);
    }
  }

  /** As often as the runtime would: six questions at a time, and no more jobs are open than the plan allows. */
  async #ring(): Promise<void> {
    for (let time = 0; time < 3; time++) await this.#meter.alarm();
    this.#noteExpiries();
    for (const known of this.#open()) expect(this.#expiry(known)).toBeGreaterThan(this.#world.now);
  }

  check(): void {
    this.#noteExpiries();
    const sum = (pick: (known: Known) => number) => this.#jobs.reduce((total, known) => total + pick(known), 0);
    const { totals, limits } = this.#meter.usage({
      plan: "tested",
      planFrom: "token",
      plans: plansText({ tested: plan }),
      token: undefined,
    });
    expect(totals).toEqual({
      known: sum(({ state, charge, assumed }) => (state === "ended" && !assumed ? charge : 0)),
      assumed: sum(({ state, charge, assumed }) => (state === "ended" && assumed ? charge : 0)),
      reserved: sum(({ state, asked }) => (state === "open" ? asked.reserveMicroUsd : 0)),
    });
    expect(limits.find(({ unit }) => unit === "jobs")?.used).toBe(this.#open().length);
    expect(limits.find(({ unit }) => unit === "usd")?.used).toBe(this.#usedOn(this.#world.now));
  }

  /** Days later nothing is open, whatever became of the answers. */
  async finish(): Promise<void> {
    this.#budget = true;
    this.#world.now += 2 * dayMs;
    await this.#ring();
    this.check();
    expect(this.#open()).toEqual([]);
  }

  #open(): Known[] {
    return this.#jobs.filter(({ state }) => state === "open");
  }

  /** By the day of the admission: a job that ends after midnight belongs to the day before. */
  #usedOn(now: number): number {
    const today = this.#jobs.filter(({ at }) => Math.floor(at / dayMs) === Math.floor(now / dayMs));
    return today.reduce((sum, { state, charge, asked }) => {
      if (state === "open") return sum + asked.reserveMicroUsd;
      return state === "ended" ? sum + charge : sum;
    }, 0);
  }
}

const unsettled = { charge: 0, assumed: false, truth: "unreachable" as UpstreamAnswer };

function isFinal(status: JobState): boolean {
  return status !== "IN_QUEUE" && status !== "IN_PROGRESS";
}

/** Failures are free, a cancelled job costs what it says or nothing, all else the truth or the estimate. */
function chargeFor(status: JobState, cost: unknown, reserved: number): { truth: boolean; charge: number } {
  if (status === "FAILED" || status === "TIMED_OUT") return { truth: true, charge: 0 };
  const said = typeof cost === "number" && Number.isFinite(cost) && cost >= 0 ? Math.round(cost) : undefined;
  if (said !== undefined) return { truth: true, charge: said };
  return { truth: false, charge: status === "CANCELLED" ? 0 : reserved };
}
