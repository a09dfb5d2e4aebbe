// USER_METER: one object a payer. Calls come in, each one turn; one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import { OneAlarm } from "../../wire/one-alarm.ts";
import { remote } from "../../wire/remote.ts";
import type { Send } from "../../wire/webhook.ts";
import type { AccountSettings } from "./account-settings.ts";
import { Admissions } from "./admissions.ts";
import { AskedAdmissions } from "./asked-admissions.ts";
import { BesideAlarm } from "./beside-alarm.ts";
import { Bindings } from "./bindings.ts";
import { type Budget, budgetName } from "./budget.ts";
import { BudgetSlices } from "./budget-slices.ts";
import { Deliveries } from "./deliveries.ts";
import { Endings } from "./endings.ts";
import { Errands } from "./errands.ts";
import { describeJob } from "./job.ts";
import { MeterStores } from "./meter-stores.ts";
import type {
  AdmitAnswer,
  AdmitRequest,
  Amendment,
  AskUpstream,
  Binding,
  Claims,
  DescribeEnd,
  Ending,
  GalleryCalls,
  GalleryCursor,
  GalleryRow,
  HandedOut,
  Hit,
  HitAnswer,
  MeteredJob,
  Metering,
  Settled,
} from "./metering.ts";
import { Network } from "./network.ts";
import type { ShareEnd } from "./network-ends.ts";
import { type PayerView, type PlanDefaults, viewPayer } from "./payer-view.ts";
import { dayMs } from "./periods.ts";
import { Released } from "./released.ts";
import { describeUsage, type MeterTotals, type MeterUsage, totalsOf } from "./usage.ts";

/** Questions, debts, and ends for the network, of each under way at once. */
const atOnce = 6;
/** Clocks of machines differ by less. */
const toleranceMs = 5_000;
/** What goes on beside the alarm is mostly done by then. */
const quickMs = 100;
/** Of a payer who is silent for so long nothing is kept but what the operator set. */
const keptMs = 70 * dayMs;

/** What an operator's recount found. */
export interface Recounted {
  readonly was: MeterTotals;
  readonly is: MeterTotals;
  /** Which counters were something else than their rows say. */
  readonly off: readonly string[];
}

export class UserMeter extends DurableObject<Env> implements Metering, GalleryCalls {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  send: Send = (request) => fetch(request);
  /** Set by the room that knows the upstream. */
  ask: AskUpstream = async () => "unreachable";
  describeEnd: DescribeEnd = (_, status) => JSON.stringify({ status });
  readonly #stores: MeterStores;
  readonly #bindings: Bindings;
  readonly #endings: Endings;
  readonly #admissions: Admissions;
  readonly #slices: BudgetSlices;
  readonly #asking: AskedAdmissions;
  readonly #errands: Errands;
  readonly #deliveries: Deliveries;
  readonly #telling = new BesideAlarm(atOnce, () => this.#armBeside());
  readonly #paying = new BesideAlarm(atOnce, () => this.#armBeside());
  readonly #released = new Released();
  readonly #alarm: OneAlarm;
  #rings = 0;
  /** By the clock, which may be set back. */
  #lastAt: number;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#stores = new MeterStores(ctx.storage, () => this.clock());
    this.#lastAt = this.#stores.activeAt;
    this.#bindings = new Bindings(this.#stores);
    this.#endings = new Endings(this.#stores, this.#bindings);
    this.#admissions = new Admissions(this.#stores);
    const clock = () => this.clock();
    const network = new Network(env.USER_METER as unknown as DurableObjectNamespace<UserMeter>);
    this.#slices = new BudgetSlices(ctx.id.toString(), this.#stores, () => remote<Budget>(env.BUDGET, budgetName));
    this.#asking = new AskedAdmissions({
      stores: this.#stores,
      admissions: this.#admissions,
      endings: this.#endings,
      slices: this.#slices,
      released: this.#released,
      network,
      clock,
      arm: () => this.#arm(),
    });
    this.#errands = new Errands(env, {
      stores: this.#stores,
      endings: this.#endings,
      network,
      clock,
      ask: (job, large) => this.ask(job, large),
      describeEnd: (job, status) => this.describeEnd(job, status),
      send: (notice) => this.send(notice),
    });
    this.#deliveries = new Deliveries({
      stores: this.#stores,
      clock,
      deliver: (notice) => this.#errands.deliver(notice),
      ended: () => this.#armBeside(),
    });
    this.#alarm = new OneAlarm(ctx, "user-meter", () => this.#ring(), this.#armedAt());
  }

  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    this.bind(request.binds ?? []);
    const answer = this.#asking.admit(request);
    this.#arm();
    return answer;
  }

  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer> {
    const answer = this.#asking.amend(admission, amendment);
    this.#arm();
    return answer;
  }

  bind(binds: readonly Binding[]): void {
    for (const binding of binds) this.#bindings.bind(binding, this.clock());
    if (binds.length > 0) this.#arm();
  }

  release(admission: string): void {
    const now = this.clock();
    if (!this.#endings.release(admission, now)) this.#released.add(admission, now);
    this.#arm();
  }

  doubt(admission: string): void {
    this.#bindings.doubt(admission, this.clock());
    this.#arm();
  }

  lookAgain(binding: Binding): void {
    this.#bindings.lookAgain(binding, this.clock());
    this.#arm();
  }

  settle(ending: Ending, binds: readonly Binding[] = []): Settled {
    this.bind(binds);
    const settled = this.#endings.settle(ending, this.clock());
    this.#arm();
    return settled;
  }

  handOut(admission: string, handed: HandedOut): void {
    this.#bindings.handOut(admission, handed, this.clock());
    this.#arm();
  }

  notify(admission: string, body: string): void {
    this.#endings.notify(admission, body, this.clock());
    this.#arm();
  }

  countHit(hit: Hit): HitAnswer {
    const answer = this.#admissions.countHit(hit, this.clock());
    this.#arm();
    return answer;
  }

  /** An address's job in the meter of its network: what it ended as. */
  endShare(admission: string, end: ShareEnd): void {
    this.#endings.endShare(admission, end, this.clock());
    this.#arm();
  }

  job(admission: string): MeteredJob | undefined {
    this.#endOverdue();
    const job = this.#stores.jobs.find(admission);
    return job && describeJob(job);
  }

  lastWord(names: readonly string[]): string | Uint8Array | undefined {
    const [admission = ""] = names;
    const owed = names.map((name) => this.#stores.debts.result(name)).find((body) => body !== undefined);
    return owed ?? this.#endings.lastWord(admission);
  }

  openJobs(owner: string, model: string, count: number): MeteredJob[] {
    this.#endOverdue();
    return this.#stores.jobs.openOf(owner, model, count);
  }

  jobs(owner: string, model: string | undefined, offset: number, count: number) {
    this.#endOverdue();
    return this.#stores.jobs.page(owner, model, offset, count);
  }

  gallery(owner: string, before: GalleryCursor | undefined, count: number): GalleryRow[] {
    return this.#stores.gallery.page(owner, before, count, this.clock());
  }

  addToGallery(owner: string, row: GalleryRow): void {
    const now = this.clock();
    this.#stores.transaction(() => {
      this.#stores.touch(now);
      this.#stores.gallery.add(owner, row, now);
    });
    this.#arm();
  }

  removeFromGallery(owner: string, key: string): void {
    this.#stores.gallery.remove(owner, key);
  }

  usage(claims: Claims): MeterUsage {
    this.#endOverdue();
    const held = this.#stores.settings.held(claims);
    return describeUsage(this.#stores, held, this.#admissions.standings(claims, this.clock()));
  }

  view(owner: string, defaults: PlanDefaults): PayerView | undefined {
    this.#endOverdue();
    return viewPayer(this.#stores, this.#admissions, owner, defaults, this.clock());
  }

  settings(): AccountSettings {
    return this.#stores.settings.current;
  }

  configure(settings: AccountSettings): void {
    const now = this.clock();
    this.#stores.transaction(() => {
      this.#stores.touch(now);
      this.#stores.settings.change(settings, now);
    });
    this.#arm();
  }

  reset(): void {
    this.#stores.reset(this.clock());
  }

  /** Counters made of their rows again. */
  recount(): Recounted {
    this.#endOverdue();
    const was = totalsOf(this.#stores);
    const off = this.#stores.recount();
    return { was, is: totalsOf(this.#stores), off };
  }

  /** Which counters are something else than their rows say: never any. Changes nothing in SQL. */
  audit(): readonly string[] {
    return this.#stores.counters.recount(this.#stores.jobs.all());
  }

  /** At once here; everywhere else as soon as the isolates read CONTROL. */
  revoke(owner: string, at: number, token?: { readonly id: string; readonly expiresAt: number }): void {
    const now = this.clock();
    this.#stores.transaction(() => {
      this.#stores.touch(now);
      if (token) this.#stores.revocations.revokeToken(token.id, token.expiresAt, now);
      else this.#stores.revocations.revokeOwner(owner, at);
    });
    this.#arm();
  }

  #endOverdue(): void {
    this.#endings.endOverdue(this.clock());
    this.#arm();
  }

  #dueAt(): number {
    const { jobs, leases, networkEnds, debts } = this.#stores;
    const ends = this.#telling.free > 0 ? networkEnds.nextDue() : undefined;
    const owed = this.#paying.free > 0 ? debts.nextDue() : undefined;
    const moments = [jobs.nextDue(), this.#deliveries.nextDue(), leases.nextDue(), ends, owed];
    return Math.min(...moments.map((at) => at ?? Number.POSITIVE_INFINITY));
  }

  /** It was armed for all that the rows say, and rings at what the state says at the latest; one that is late is gone. */
  #armedAt(): number | undefined {
    const at = Math.min(this.#dueAt(), this.#stores.alarmAt ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(at) && at > Date.now() ? at : undefined;
  }

  #arm(): void {
    if (!this.#stores.isBorn) return;
    const now = this.clock();
    if (now < this.#lastAt - toleranceMs) this.#stores.hurry(now);
    this.#lastAt = now;
    this.#alarm.arm(this.#dueAt(), this.#endings.areUnasked ? now : undefined, this.#emptyAt(now));
    this.#stores.alarmAt = this.#alarm.at ?? null;
  }

  /** When there may be nothing to keep any more: a webhook may have been the last of it. */
  #emptyAt(now: number): number {
    const silentAt = this.#stores.activeAt + keptMs;
    if (silentAt > now) return silentAt;
    return this.#stores.isWorthless(now, keptMs) ? now : now + keptMs;
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }

  /** Questions are waited for, so that no more of them are asked at once. All else goes on beside it. */
  async #ring(): Promise<void> {
    const now = this.clock();
    this.#rings += 1;
    try {
      await this.#work(now);
    } finally {
      this.#rings -= 1;
    }
    if (this.#stores.isWorthless(now, keptMs)) return this.#empty();
    this.#arm();
    this.#stores.prune(now);
  }

  async #work(now: number): Promise<void> {
    const { jobs, notices, ends, debts } = this.#stores.transaction(() => ({
      jobs: this.#endings.claimDue(now, atOnce),
      notices: this.#deliveries.claim(now),
      ends: this.#stores.networkEnds.claim(now, this.#telling.free),
      debts: this.#stores.debts.claim(now, this.#paying.free),
    }));
    const asked = jobs.map((job) => this.#errands.follow(job));
    const beside = Promise.all([
      ...notices.map((notice) => this.#deliveries.begin(notice)),
      ...debts.map((debt) => this.#paying.begin(this.#errands.pay(debt))),
      ...ends.map((end) => this.#telling.begin(this.#errands.tellNetwork(end))),
      this.#slices.report(this.clock),
    ]);
    this.ctx.waitUntil(beside);
    await Promise.all([...asked, Promise.race([beside, scheduler.wait(quickMs)])]);
  }

  /** What ends while the alarm rings is armed for at its end: rows that are done by then wake nobody. */
  #armBeside(): void {
    if (this.#rings === 0) this.#arm();
  }

  /** Gone, as if there had been nobody: the next row makes the tables anew. */
  async #empty(): Promise<void> {
    await this.ctx.blockConcurrencyWhile(async () => {
      await this.#alarm.stop();
      await this.ctx.storage.deleteAll();
      this.#stores.reopen();
    });
  }
}
