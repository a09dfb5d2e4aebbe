// USER_METER: one object a payer. Calls come in, each one turn; one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import { remote } from "../../wire/remote.ts";
import type { Send } from "../../wire/webhook.ts";
import type { AccountSettings } from "./account-settings.ts";
import { Admissions } from "./admissions.ts";
import { AskedAdmissions } from "./asked-admissions.ts";
import { Bindings } from "./bindings.ts";
import { type Budget, budgetName } from "./budget.ts";
import { BudgetSlices } from "./budget-slices.ts";
import { Endings } from "./endings.ts";
import { Errands } from "./errands.ts";
import { describeJob } from "./job.ts";
import { MeterAlarm } from "./meter-alarm.ts";
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
import { Released } from "./released.ts";
import { describeUsage, type MeterTotals, type MeterUsage, totalsOf } from "./usage.ts";

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
  readonly #released = new Released();
  readonly #alarm: MeterAlarm;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#stores = new MeterStores(ctx.storage, () => this.clock());
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
      arm: () => this.#alarm.arm(),
    });
    const errands = new Errands(env, {
      stores: this.#stores,
      endings: this.#endings,
      network,
      clock,
      ask: (job, large) => this.ask(job, large),
      describeEnd: (job, status) => this.describeEnd(job, status),
      send: (notice) => this.send(notice),
    });
    this.#alarm = new MeterAlarm(ctx, {
      stores: this.#stores,
      endings: this.#endings,
      errands,
      slices: this.#slices,
      clock,
    });
  }

  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    this.bind(request.binds ?? []);
    const answer = this.#asking.admit(request);
    this.#alarm.arm();
    return answer;
  }

  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer> {
    const answer = this.#asking.amend(admission, amendment);
    this.#alarm.arm();
    return answer;
  }

  bind(binds: readonly Binding[]): void {
    for (const binding of binds) this.#bindings.bind(binding, this.clock());
    if (binds.length > 0) this.#alarm.arm();
  }

  release(admission: string): void {
    const now = this.clock();
    if (!this.#endings.release(admission, now)) this.#released.add(admission, now);
    this.#alarm.arm();
  }

  doubt(admission: string): void {
    this.#bindings.doubt(admission, this.clock());
    this.#alarm.arm();
  }

  lookAgain(binding: Binding): void {
    this.#bindings.lookAgain(binding, this.clock());
    this.#alarm.arm();
  }

  settle(ending: Ending, binds: readonly Binding[] = []): Settled {
    this.bind(binds);
    const settled = this.#endings.settle(ending, this.clock());
    this.#alarm.arm();
    return settled;
  }

  handOut(admission: string, handed: HandedOut): void {
    this.#bindings.handOut(admission, handed, this.clock());
    this.#alarm.arm();
  }

  notify(admission: string, body: string): void {
    this.#endings.notify(admission, body, this.clock());
    this.#alarm.arm();
  }

  countHit(hit: Hit): HitAnswer {
    const answer = this.#admissions.countHit(hit, this.clock());
    this.#alarm.arm();
    return answer;
  }

  /** An address's job in the meter of its network: what it ended as. */
  endShare(admission: string, end: ShareEnd): void {
    this.#endings.endShare(admission, end, this.clock());
    this.#alarm.arm();
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
    this.#alarm.arm();
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
    this.#alarm.arm();
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
    this.#alarm.arm();
  }

  #endOverdue(): void {
    this.#endings.endOverdue(this.clock());
    this.#alarm.arm();
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }
}
