// A meter's life as it is drawn: every call, in any order, with lost clocks, deaths and late truths; and what must hold
// after each step, worked out from the calls' answers and from rows that are read past the meter.
import fc from "fast-check";
import { expect } from "vitest";
import type { JobState } from "../../../src/contract/states.ts";
import { newAdmission } from "../../../src/gateway/jobs/admission-id.ts";
import { plansText } from "../../../src/gateway/operator-settings/plans.ts";
import type { Rule } from "../../../src/gateway/operator-settings/rules.ts";
import type { Job } from "../../../src/gateway/quota/job.ts";
import { type EndedRow, type OpenRow, readEnded, readOpen } from "../../../src/gateway/quota/job-rows.ts";
import type { AdmitAnswer, AdmitRequest } from "../../../src/gateway/quota/metering.ts";
import { spendDays } from "../../../src/gateway/quota/spend.ts";
import { tablesWhenNeeded } from "../../../src/gateway/quota/tables.ts";
import type { UpstreamAnswer } from "../../../src/gateway/quota/upstream-poll.ts";
import type { UserMeter } from "../../../src/gateway/quota/user-meter.ts";
import { codeOf, request } from "./admissions.ts";
import { newWorld, type World, wake } from "./planted-meter.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const jobsLimit = 6;
const dayLimit = 400_000;
const requestsLimit = 4;
const rules: Rule[] = [
  { unit: "jobs", limit: jobsLimit },
  { unit: "usd", limit: dayLimit / 1e6, per: "day" },
  { unit: "usd", limit: 3, per: "month" },
  { unit: "requests", limit: requestsLimit, per: "minute" },
  { unit: "requests", limit: 1000, per: "day", models: ["video"] },
];
const plan = { plan: "tested", planFrom: "token" as const, plans: plansText({ tested: rules }) };
const token = { id: "narrow", rules: [{ unit: "jobs", limit: 3 } satisfies Rule], maxCostMicroUsd: 300_000 };
const kinds = [
  { model: "flux", kind: "image" },
  { model: "granite-4-0-h-small", kind: "text" },
  { model: "sora", kind: "video" },
  { model: "opened-endpoint", kind: undefined },
] as const;

/** Half an hour to midnight, at the end of a month. */
const start = Date.UTC(2031, 0, 31, 23, 30);

const job = fc.nat({ max: 11 });
const cost = fc.oneof(
  { weight: 4, arbitrary: fc.nat({ max: 60_000 }) },
  fc.constantFrom<unknown>(null, undefined, -1, Number.NaN, Number.POSITIVE_INFINITY, "0.02", {}, 50_000_000, 0.4),
);
const states = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"] as const;
const state = fc.constantFrom<JobState>(...states);
const pauses = [
  1,
  700,
  5 * secondMs,
  31 * secondMs,
  3 * minuteMs,
  11 * minuteMs,
  40 * minuteMs,
  9 * hourMs,
  12 * dayMs,
];
const backwards = [-700, -5 * secondMs, -hourMs, -11 * dayMs];
const of = <T extends string, R extends object>(what: T, fields: { [K in keyof R]: fc.Arbitrary<R[K]> }) =>
  fc.record({ do: fc.constant(what), ...fields }) as fc.Arbitrary<{ do: T } & R>;

interface Admitting {
  kind: number;
  reserve: number;
  times: number;
  ttl: number;
  how: "run" | "runsync" | "openai" | "lb" | "joined";
  key: number;
  fingerprint: number;
  narrowed: boolean;
  hasNotice: boolean;
  hasCeiling: boolean;
  again: boolean;
}

const admit = of<"admit", Admitting>("admit", {
  kind: fc.nat({ max: kinds.length - 1 }),
  reserve: fc.constantFrom(0, 1, 20_000, 90_000),
  times: fc.constantFrom(1, 1, 1, 4),
  ttl: fc.constantFrom(10 * secondMs, hourMs, dayMs),
  how: fc.constantFrom("run", "run", "runsync", "openai", "lb", "joined"),
  key: fc.nat({ max: 4 }),
  fingerprint: fc.nat({ max: 1 }),
  narrowed: fc.boolean(),
  hasNotice: fc.boolean(),
  hasCeiling: fc.boolean(),
  again: fc.boolean(),
});

export type Command =
  | ({ do: "admit" } & Admitting)
  | { do: "refused"; reserve: number; bytes: number }
  | { do: "bind" | "release" | "doubt"; job: number }
  | { do: "retry"; job: number; accepted: boolean }
  | { do: "amend"; job: number; reserve: number }
  | { do: "handOut"; job: number; pieces: number; bytes: number; whole: boolean }
  | { do: "hit"; key: number }
  | { do: "settle"; job: number; status: JobState; cost: unknown; withId: boolean; agoMs: number; times: number }
  | { do: "upstream"; job: number; says: JobState | "unknown" | "unreachable"; cost: unknown }
  | { do: "budget"; reachable: boolean }
  | { do: "pass"; ms: number; alarm: boolean }
  | { do: "reset" | "evict" };

export const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: admit as fc.Arbitrary<Command> },
    {
      weight: 1,
      arbitrary: of("refused", {
        reserve: fc.constantFrom(-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -2_400_000_000),
        bytes: fc.constant(1),
      }),
    },
    { weight: 4, arbitrary: of("bind", { job }) },
    { weight: 1, arbitrary: of("release", { job }) },
    { weight: 1, arbitrary: of("doubt", { job }) },
    { weight: 2, arbitrary: of("retry", { job, accepted: fc.boolean() }) },
    { weight: 1, arbitrary: of("amend", { job, reserve: fc.constantFrom(0, 30_000, 500_000) }) },
    {
      weight: 1,
      arbitrary: of("handOut", { job, pieces: fc.nat(5), bytes: fc.nat(50_000), whole: fc.boolean() }),
    },
    { weight: 1, arbitrary: of("hit", { key: fc.nat({ max: 3 }) }) },
    {
      weight: 6,
      arbitrary: of("settle", {
        job,
        status: state,
        cost,
        withId: fc.boolean(),
        agoMs: fc.constantFrom(0, 0, 5 * secondMs),
        times: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 2,
      arbitrary: of("upstream", { job, cost, says: fc.oneof(state, fc.constantFrom("unknown", "unreachable")) }),
    },
    {
      weight: 4,
      arbitrary: of("pass", { ms: fc.constantFrom(...pauses, ...pauses, ...backwards), alarm: fc.boolean() }),
    },
    { weight: 1, arbitrary: of("budget", { reachable: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constantFrom<Command>({ do: "reset" }, { do: "evict" }, { do: "evict" }) },
  ) as fc.Arbitrary<Command>,
  { minLength: 4, maxLength: 30 },
);

const tableNames = new Set<string>(tablesWhenNeeded);

interface Known {
  readonly asked: AdmitRequest;
  readonly upstreamId: string;
  /** Of the chain's first. */
  readonly chain: string;
  truth: UpstreamAnswer;
}

/** An open job has no charge. */
type Row = Omit<Job, "charged" | "assumed"> & { readonly charged: number | null; readonly assumed: number | null };

export class Ledger {
  readonly #state: DurableObjectState;
  readonly #world: World = newWorld(start);
  readonly #jobs: Known[] = [];
  readonly #keys = new Map<string, { asked: AdmitRequest; until: number }>();
  /** The clock never went back: only then do moments say what is older. */
  #isSteady = true;
  /** The rules have forgotten what the rows still say. */
  #wasReset = false;
  #meter: UserMeter;
  #budget = true;
  #count = 0;
  #checks = 0;
  #latest = start;

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
      case "refused":
        return this.#admitNothing(command);
      case "bind":
        return this.#with(command.job, ({ asked: { admission }, upstreamId }) => {
          this.#meter.bind([{ admission, upstreamId }]);
        });
      case "release":
        return this.#with(command.job, ({ asked }) => this.#release(asked));
      case "doubt":
        return this.#with(command.job, ({ asked }) => this.#meter.doubt(asked.admission));
      case "retry":
        return this.#retry(this.#jobs[command.job], command.accepted);
      case "amend":
        return this.#amend(this.#jobs[command.job], command.reserve);
      case "handOut":
        return this.#with(command.job, ({ asked, upstreamId }) => {
          const { pieces, bytes: textBytes, whole } = command;
          this.#meter.handOut(asked.admission, { upstreamId, pieces, textBytes, whole });
        });
      case "hit":
        return this.#hit(command.key);
      case "settle":
        return this.#with(command.job, (known) => {
          for (let time = 0; time < command.times; time++) this.#settle(known, command);
        });
      case "upstream":
        return this.#with(command.job, (known) => {
          const { says, cost } = command;
          const said = { status: says as JobState, costMicroUsd: cost as number, completedAt: this.#world.now };
          known.truth = says === "unknown" || says === "unreachable" ? says : { ...said, body: "{}" };
        });
      case "budget":
        this.#budget = command.reachable;
        return;
      case "pass":
        this.#isSteady &&= command.ms > 0;
        this.#world.now += command.ms;
        for (const [key, { until }] of this.#keys) if (until <= this.#world.now) this.#keys.delete(key);
        return command.alarm ? this.#ring() : undefined;
      case "reset":
        this.#wasReset = true;
        return this.#meter.reset();
      case "evict":
        return this.#evict();
    }
  }

  #with(at: number, act: (known: Known) => void): void {
    const known = this.#jobs[at];
    if (known) act(known);
  }

  async #admit(drawn: Admitting): Promise<void> {
    const { how, key, fingerprint, hasNotice, hasCeiling, narrowed } = drawn;
    const asked = request({
      ...plan,
      ...kinds[drawn.kind],
      admission: this.#newAdmission(),
      ttlMs: drawn.ttl,
      hasNotice,
      hasCeiling,
      operation: how === "joined" ? "run" : how,
      reserveMicroUsd: how === "joined" ? 0 : drawn.reserve * drawn.times,
      ...(how === "joined" && { joined: true }),
      token: narrowed ? token : undefined,
      retentionMs: how === "runsync" ? minuteMs : 30 * minuteMs,
      idempotency: key === 0 ? undefined : { key: `k${key}`, fingerprint: `f${fingerprint}` },
    });
    await this.#expectAdmitted(asked, asked.admission);
    if (drawn.again) await this.#meter.admit(asked);
  }

  /** What is no amount reaches nothing. */
  async #admitNothing({ reserve, bytes }: { reserve: number; bytes: number }): Promise<void> {
    const before = this.#rows();
    const asked = request({ ...plan, reserveMicroUsd: reserve, inputBytes: bytes });
    await expect(async () => this.#meter.admit(asked)).rejects.toThrow("no amount");
    expect(this.#rows()).toEqual(before);
  }

  async #retry(first: Known | undefined, accepted: boolean): Promise<void> {
    if (!first || first.asked.joined) return;
    const { admission } = first.asked;
    const asked = {
      ...first.asked,
      admission: this.#newAdmission(),
      operation: "retry" as const,
      idempotency: undefined,
      retryOf: { admission, upstreamId: first.upstreamId },
    };
    const known = await this.#expectAdmitted(asked, first.chain, first.upstreamId);
    if (known && accepted) this.#meter.bind([{ admission: asked.admission, upstreamId: first.upstreamId }]);
  }

  async #amend(known: Known | undefined, reserve: number): Promise<void> {
    if (!known) return;
    const { admission } = known.asked;
    const before = this.#find(admission);
    const answer = await this.#meter.amend(admission, {
      terms: { ...plan, token: known.asked.token, hasCeiling: known.asked.hasCeiling },
      inputBytes: 1000,
      reserveMicroUsd: reserve,
    });
    const after = this.#find(admission);
    if (answer.admitted) expect(after?.reserved).toBe(after?.operation === "joined" ? 0 : reserve);
    else if (before?.endedAt === null) expect(after?.reserved ?? 0).toBe(before.reserved);
  }

  #hit(key: number): void {
    const { now } = this.#world;
    const row = {
      key: `hit-${key}`,
      field: "image_url",
      model: "flux",
      cost: 0,
      size: null,
      completedAt: now,
      expiresAt: now + 7 * dayMs,
    };
    const { owner, bearer, model, kind } = request();
    const before = this.#rows();
    this.#meter.countHit({ ...plan, owner, bearer, model, kind, token: undefined, hasCeiling: false, row });
    expect(this.#rows()).toEqual(before);
  }

  #newAdmission(): string {
    this.#count += 1;
    return newAdmission(this.#world.now, new Uint8Array([0, 0, 0, 0, 0, 0, this.#count >> 8, this.#count & 255]));
  }

  async #expectAdmitted(
    asked: AdmitRequest,
    chain: string,
    upstreamId = `job-${asked.admission}`,
  ): Promise<Known | undefined> {
    const answer = await this.#meter.admit(asked);
    const key = asked.idempotency?.key;
    const earlier = key === undefined ? undefined : this.#keys.get(key);
    if (earlier && earlier.until > this.#world.now) return this.#expectKept(answer, earlier.asked, asked);
    const code = codeOf(answer);
    if (!answer.admitted) {
      const expected = ["RATE_LIMITED", "TOO_MANY_JOBS", "QUOTA_EXCEEDED"];
      expect(this.#budget ? expected : [...expected, "METER_UNAVAILABLE"]).toContain(code);
      return undefined;
    }
    this.#expectWithinLimits(asked);
    const known: Known = { asked, chain, upstreamId, truth: "unreachable" };
    this.#jobs.push(known);
    if (key !== undefined) this.#keys.set(key, { asked, until: this.#world.now + dayMs });
    return known;
  }

  /** The key stays with its admission for a day, whatever became of that. */
  #expectKept(answer: AdmitAnswer, earlier: AdmitRequest, asked: AdmitRequest): undefined {
    if (earlier.idempotency?.fingerprint !== asked.idempotency?.fingerprint) {
      expect(codeOf(answer)).toBe("IDEMPOTENCY_MISMATCH");
    } else if ("replay" in answer) {
      expect(answer.replay.admission).toBe(earlier.admission);
    } else {
      expect(codeOf(answer)).toBe("IN_PROGRESS");
    }
  }

  /** With what was just admitted. */
  #expectWithinLimits({ joined, reserveMicroUsd }: AdmitRequest): void {
    const { now } = this.#world;
    const rows = this.#rows();
    const open = rows.filter(({ endedAt }) => endedAt === null);
    if (!joined) expect(open.filter(({ place }) => place === 1).length).toBeLessThanOrEqual(jobsLimit);
    const narrow = open.filter(({ account, place }) => account === token.id && place === 1);
    expect(narrow.length).toBeLessThanOrEqual(3);
    if (!this.#isSteady || this.#wasReset) return;
    expect(rows.filter(({ admittedAt }) => admittedAt > now - minuteMs).length).toBeLessThanOrEqual(requestsLimit);
    if (reserveMicroUsd === 0) return;
    const today = rows.filter(({ admittedAt }) => Math.floor(admittedAt / dayMs) === Math.floor(now / dayMs));
    expect(sumOf(today, (row) => row.charged ?? row.reserved)).toBeLessThanOrEqual(dayLimit);
  }

  #release({ admission, idempotency }: AdmitRequest): void {
    this.#meter.release(admission);
    if (this.#find(admission) || !idempotency) return;
    if (this.#keys.get(idempotency.key)?.asked.admission === admission) this.#keys.delete(idempotency.key);
  }

  #settle({ asked, upstreamId }: Known, { status, cost, withId, agoMs }: Extract<Command, { do: "settle" }>): void {
    const { now } = this.#world;
    const before = this.#rows();
    const settled = this.#meter.settle({
      admission: asked.admission,
      upstreamId: withId ? upstreamId : null,
      status,
      costMicroUsd: cost as number,
      askedAt: now - agoMs,
      seenAt: now,
      completedAt: now - agoMs,
    });
    const after = this.#find(settled.admission);
    if (!after) return;
    const was = before.find(({ admission }) => admission === settled.admission);
    expect(settled.chargedMicroUsd).toBe(after.charged ?? 0);
    expect(settled.first).toBe(was?.endedAt === null && after.endedAt !== null);
    const isTrue = typeof cost === "number" && Number.isFinite(cost) && cost >= 0;
    if (settled.first && after.operation !== "joined" && isTrue && status !== "FAILED") {
      expect([after.charged, after.assumed]).toEqual([Math.round(cost), 0]);
    }
    if (was?.endedAt == null || was.assumed === 1) return;
    // Its failure was an earlier run's.
    if (was.retryOf !== null && was.status === "FAILED" && status === "COMPLETED") return;
    const { charged, assumed, endedAt } = was;
    expect(after).toMatchObject({ charged, assumed, endedAt });
  }

  #answer(admission: string): UpstreamAnswer {
    const known = this.#jobs.find(({ asked }) => asked.admission === admission);
    if (!known) throw new Error("asked about a job that nobody submitted");
    if (known.truth === "unreachable") throw new Error("refused");
    return known.truth;
  }

  async #ring(): Promise<void> {
    for (let time = 0; time < 3; time++) await this.#meter.alarm();
  }

  #evict(): void {
    const before = this.#usage();
    this.#meter = wake(this.#state, this.#world);
    // A counter that was read while the clock was set back has moved what lay ahead; in the rows it lies where it was.
    const seen = this.#isSteady ? (usage: Usage) => usage : withoutResets;
    expect(seen(this.#usage())).toEqual(seen(before));
  }

  #usage(meter = this.#meter) {
    const { limits, totals } = meter.usage({ ...plan, token });
    return { limits, totals };
  }

  /** The totals are the sum of the rows, and each upstream job is charged once. The rows are read past the meter. */
  check(): void {
    const { limits, totals } = this.#usage();
    /** Memory is a function of the rows. One that wakes after the clock was set back writes, and so is not asked. */
    if (this.#isSteady) expect(this.#usage(wake(this.#state, this.#world))).toEqual({ limits, totals });
    const rows = this.#rows();
    expect(totals).toEqual({
      known: sumOf(rows, ({ assumed, charged }) => (assumed === 0 ? (charged ?? 0) : 0)),
      assumed: sumOf(rows, ({ assumed, charged }) => (assumed === 1 ? (charged ?? 0) : 0)),
      reserved: sumOf(rows, ({ endedAt, reserved }) => (endedAt === null ? reserved : 0)),
    });
    const places = rows.filter(({ endedAt, place }) => endedAt === null && place === 1).length;
    expect(limits.find(({ name }) => name === "jobs")?.used).toBe(places);
    for (const { used, reserved } of limits) expect(Math.min(used, reserved)).toBeGreaterThanOrEqual(0);
    expect(this.#meter.audit()).toEqual([]);
    for (const { admittedAt, endedAt } of rows) expect(endedAt ?? admittedAt).toBeGreaterThanOrEqual(admittedAt);
    this.#expectOneCharge(rows);
    this.#checks += 1;
    /** To read the sums moves the rows of ended jobs, which mostly wait for more of them. */
    if (this.#checks % 5 === 0) this.#expectSpend(rows);
    this.#expectTablesKnown();
  }

  /** What the state does not know of, an object that wakes makes again, and throws. */
  #expectTablesKnown(): void {
    const { sql } = this.#state.storage;
    const names = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    const made = names.map(({ name }) => name).filter((name) => tableNames.has(name));
    if (made.length === 0) return;
    const { json } = sql.exec<{ json: string }>("SELECT json FROM state").one();
    expect((JSON.parse(json) as { tables: string[] }).tables).toEqual(expect.arrayContaining(made));
  }

  /** By day and model, to the micro-USD, of the days that the latest clock has not forgotten. */
  #expectSpend(rows: readonly Row[]): void {
    this.#latest = Math.max(this.#latest, this.#world.now);
    const oldest = Math.floor(this.#latest / dayMs) - spendDays;
    const sums = new Map<string, number[]>();
    for (const { endedAt, admittedAt, model, charged, assumed } of rows) {
      const day = Math.floor(admittedAt / dayMs);
      if (endedAt === null || day <= oldest) continue;
      const [jobs = 0, all = 0, guessed = 0] = sums.get(`${day} ${model}`) ?? [];
      sums.set(`${day} ${model}`, [jobs + 1, all + (charged ?? 0), guessed + (assumed ? (charged ?? 0) : 0)]);
    }
    const spent = this.#meter.spent(request().owner, ["day", "model"]);
    const told = spent.map(({ day, model, jobs, knownMicroUsd, assumedMicroUsd }) => {
      return [`${day} ${model}`, [jobs, knownMicroUsd + assumedMicroUsd, assumedMicroUsd]] as const;
    });
    const isRemembered = ([name]: readonly [string, unknown]) => Number(name.split(" ")[0]) > oldest;
    expect(new Map(told.filter(isRemembered))).toEqual(sums);
  }

  #expectOneCharge(rows: readonly Row[]): void {
    const charged = new Map<string, number>();
    for (const row of rows) {
      const known = this.#jobs.find(({ asked }) => asked.admission === row.admission);
      if (!known || !row.charged) continue;
      charged.set(known.chain, (charged.get(known.chain) ?? 0) + 1);
    }
    for (const [chain, charges] of charged) expect([chain, charges]).toEqual([chain, 1]);
  }

  /** Days later nothing is open and nothing owed, whatever became of the answers. */
  async finish(): Promise<void> {
    this.#budget = true;
    this.#world.now = Math.max(this.#world.now, start) + 40 * dayMs;
    for (let time = 0; time < 3; time++) {
      await this.#ring();
      this.#world.now += 2 * minuteMs;
      this.check();
    }
    const rows = this.#rows();
    expect(rows.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    this.#expectSpend(rows);
  }

  #rows(): Row[] {
    const { sql } = this.#state.storage;
    const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE name IN ('jobs', 'ended')");
    const rows = tables.toArray().flatMap(({ name }): Row[] => {
      if (name === "ended") return sql.exec<EndedRow>("SELECT * FROM ended").toArray().map(readEnded);
      const open = sql.exec<OpenRow>("SELECT * FROM jobs").toArray().map(readOpen);
      return open.map((job) => (job.endedAt === null ? { ...job, charged: null, assumed: null } : job));
    });
    return rows.sort((one, other) => one.turn - other.turn);
  }

  #find(admission: string): Row | undefined {
    return this.#rows().find((row) => row.admission === admission);
  }
}

function sumOf(rows: readonly Row[], amount: (row: Row) => number): number {
  return rows.reduce((sum, row) => sum + amount(row), 0);
}

type Usage = Pick<ReturnType<UserMeter["usage"]>, "limits" | "totals">;

function withoutResets({ limits, totals }: Usage) {
  return { limits: limits.map(({ resetsAt: _, ...limit }) => limit), totals };
}
