// USER_METER: one object per payer. Each call is one synchronous turn; one alarm does everything that is due by time.
import { CheckedObject } from "../../durable/checked-object.ts";
import type { Send } from "../../http/webhook.ts";
import { type AccountSettings, changed, type SettingsChange } from "./account-settings.ts";
import type { Admissions } from "./admissions.ts";
import type { AskedAdmissions } from "./asked-admissions.ts";
import type { Bindings } from "./bindings.ts";
import type { Endings } from "./endings.ts";
import type { GalleryCalls, GalleryCursor, GalleryRow } from "./gallery-calls.ts";
import { describeJob } from "./job.ts";
import type { MeterAlarm } from "./meter-alarm.ts";
import { partsOf } from "./meter-parts.ts";
import type { MeterStores } from "./meter-stores.ts";
import type {
  AdmitAnswer,
  AdmitRequest,
  Amendment,
  Binding,
  Claims,
  Ending,
  HandedOut,
  Hit,
  HitAnswer,
  KnownEnd,
  MeteredJob,
  Metering,
  Settled,
} from "./metering.ts";
import type { ShareEnd } from "./network-ends.ts";
import type { OpenJobs } from "./open-jobs.ts";
import { type PayerView, type PlanDefaults, viewPayer } from "./payer-view.ts";
import { Released } from "./released.ts";
import type { SpendBy, Spent } from "./spend.ts";
import type { UploadAdmissions } from "./upload-admissions.ts";
import type { KeptUpload, UploadCalls, UploadRequest } from "./upload-calls.ts";
import type { UploadCursor, UploadState } from "./upload-row.ts";
import type { AskUpstream, DescribeEnd } from "./upstream-poll.ts";
import { describeUsage, type MeterTotals, type MeterUsage, totalsOf } from "./usage.ts";

/** What an operator's recount found. */
export interface Recounted {
  readonly was: MeterTotals;
  readonly is: MeterTotals;
  /** Which counters were something else than their rows say. */
  readonly off: readonly string[];
}

export class UserMeter extends CheckedObject implements Metering, GalleryCalls, UploadCalls {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  send: Send = (request) => fetch(request);
  /** Set in upstream-choice.ts, so that the quota does not import the upstream client. */
  ask: AskUpstream = async () => "unreachable";
  describeEnd: DescribeEnd = (_, status) => JSON.stringify({ status });
  readonly #stores: MeterStores;
  readonly #bindings: Bindings;
  readonly #endings: Endings;
  readonly #openJobs: OpenJobs;
  readonly #admissions: Admissions;
  readonly #asking: AskedAdmissions;
  readonly #uploads: UploadAdmissions;
  readonly #released = new Released();
  readonly #alarm: MeterAlarm;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const parts = partsOf(ctx, env, this.#released, {
      clock: () => this.clock(),
      ask: (job, large) => this.ask(job, large),
      describeEnd: (job, status) => this.describeEnd(job, status),
      send: (notice) => this.send(notice),
    });
    this.#stores = parts.stores;
    this.#bindings = parts.bindings;
    this.#endings = parts.endings;
    this.#openJobs = parts.openJobs;
    this.#admissions = parts.admissions;
    this.#asking = parts.asking;
    this.#uploads = parts.uploads;
    this.#alarm = parts.alarm;
  }

  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    try {
      if (request.binds) this.#learn(request.binds);
      return this.#asking.admit(request);
    } finally {
      // What was learned may owe something, also if the rest failed.
      this.#alarm.arm();
    }
  }

  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer> {
    const answer = this.#asking.amend(admission, amendment);
    this.#alarm.arm();
    return answer;
  }

  bind(binds: readonly (Binding | Ending)[]): void {
    this.#learn(binds);
    this.#alarm.arm();
  }

  #learn(binds: readonly (Binding | Ending)[]): void {
    const now = this.clock();
    for (const told of binds) {
      if ("status" in told) this.#endings.settle(told, now);
      else this.#bindings.bind(told, now);
    }
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

  settle(ending: Ending, binds: readonly (Binding | Ending)[] = []): Settled {
    try {
      this.#learn(binds);
      return this.#endings.settle(ending, this.clock());
    } finally {
      this.#alarm.arm();
    }
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

  /** An address's job in the meter of its network: it goes on. */
  prolongShare(admission: string): void {
    this.#endings.prolongShare(admission, this.clock());
    this.#alarm.arm();
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

  lastWord(names: readonly string[]): KnownEnd {
    const [admission = ""] = names;
    const known = this.#endings.lastWord(admission);
    const { newest = admission } = known;
    const owed = [newest, ...names].map((name) => this.#stores.debts.result(name)).find((body) => body !== undefined);
    return { owed, ...known };
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

  async reserveUpload(request: UploadRequest): Promise<AdmitAnswer> {
    const answer = await this.#uploads.reserve(request);
    this.#alarm.arm();
    return answer;
  }

  beginUpload(key: string): UploadState {
    return this.#armed(this.#uploads.begin(key));
  }

  keepUpload(key: string): UploadState {
    return this.#armed(this.#uploads.keep(key));
  }

  refuseUpload(key: string): void {
    this.#armed(this.#uploads.refuse(key));
  }

  removeUpload(owner: string, key: string): boolean {
    return this.#armed(this.#uploads.remove(owner, key));
  }

  uploads(owner: string, before: UploadCursor | undefined, count: number): KeptUpload[] {
    return this.#uploads.list(owner, before, count);
  }

  endUploadShare(key: string, end: UploadState): void {
    this.#armed(this.#uploads.endShare(key, end));
  }

  #armed<T>(done: T): T {
    this.#alarm.arm();
    return done;
  }

  usage(claims: Claims): MeterUsage {
    this.#endOverdue();
    const held = this.#stores.settings.held(claims);
    return describeUsage(this.#stores, held, this.#admissions.usages(claims, this.clock()));
  }

  spent(owner: string, by: SpendBy): Spent[] {
    this.#endOverdue();
    this.#stores.moveEnded();
    return this.#stores.spend.read(owner, by, this.clock());
  }

  view(owner: string, defaults: PlanDefaults): PayerView | undefined {
    this.#endOverdue();
    return viewPayer(this.#stores, this.#admissions, owner, defaults, this.clock());
  }

  settings(): AccountSettings {
    return this.#stores.settings.current;
  }

  /**
   * With a change, that is applied to what holds at this moment: calls at the same time do not lose each other's. A
   * Worker of the previous release sends no change; its object takes the settings, and answers nothing.
   */
  configure(settings: AccountSettings, change?: SettingsChange): "full" | undefined {
    const now = this.clock();
    const next = change ? changed(this.settings(), change, now) : settings;
    if (!next) return "full";
    this.#stores.transaction(() => {
      this.#stores.touch(now);
      this.#stores.settings.change(next, now);
    });
    this.#alarm.arm();
    return undefined;
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
    const { counters, jobs, uploads } = this.#stores;
    return [...counters.recount(jobs.all()), ...uploads.counts.audit()];
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
    this.#openJobs.endOverdue(this.clock());
    this.#uploads.endOverdue();
    this.#alarm.arm();
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }
}
