// USER_METER: one object a payer. Calls come in, each one turn; one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import { type Config, readConfig } from "../../config.ts";
import { migrate } from "../../wire/migrate.ts";
import { OneAlarm } from "../../wire/one-alarm.ts";
import { remote } from "../../wire/remote.ts";
import type { Send } from "../../wire/webhook.ts";
import { keepResult } from "../kept-result.ts";
import { signingKeysOf } from "../signing.ts";
import { describeAccount, type MeterAccount } from "./account.ts";
import type { AccountSettings } from "./account-settings.ts";
import { Admissions, type Claims, needsLease } from "./admissions.ts";
import { type Budget, budgetName } from "./budget.ts";
import { BudgetSlices } from "./budget-slices.ts";
import { deliverWebhook } from "./client-webhook.ts";
import { Endings } from "./endings.ts";
import { MeterStores } from "./meter-stores.ts";
import { describeJob, type JobRow } from "./metered-jobs.ts";
import type {
  AdmitAnswer,
  AdmitRequest,
  AskUpstream,
  Ending,
  GalleryCalls,
  GalleryCursor,
  GalleryRow,
  MeteredJob,
  Metering,
  Settled,
} from "./metering.ts";
import type { Notice } from "./outbox.ts";
import { steps } from "./schema.ts";
import { describeUsage, type MeterUsage } from "./usage.ts";

/** Questions, and notices, under way at once. */
const atOnce = 6;

export class UserMeter extends DurableObject<Env> implements Metering, GalleryCalls {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  send: Send = (request) => fetch(request);
  /** Set by the room that knows the upstream. */
  ask: AskUpstream = async () => "unreachable";
  readonly #stores: MeterStores;
  readonly #endings: Endings;
  readonly #admissions: Admissions;
  readonly #slices: BudgetSlices;
  readonly #alarm: OneAlarm;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    migrate(ctx.storage, steps);
    this.#alarm = new OneAlarm(ctx, "user-meter");
    this.#stores = new MeterStores(ctx.storage);
    this.#endings = new Endings(this.#stores);
    this.#admissions = new Admissions(this.#stores, this.#endings);
    this.#slices = new BudgetSlices(ctx.id.toString(), this.#stores, () => remote<Budget>(env.BUDGET, budgetName));
    this.#arm();
  }

  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    const answer = this.#admissions.admit(request, this.clock());
    if (answer === needsLease) return this.#leaseAndAdmit(request);
    this.#arm();
    return answer;
  }

  /** Others are admitted meanwhile, so the rules are asked anew once there is a slice. */
  async #leaseAndAdmit(request: AdmitRequest): Promise<AdmitAnswer> {
    const answer = await this.#slices.admit(request.reserveMicroUsd, this.clock, () => {
      const admitted = this.#admissions.admit(request, this.clock());
      return admitted === needsLease ? undefined : admitted;
    });
    this.#arm();
    return answer;
  }

  bind(admission: string, ref: string): void {
    this.#endings.bind(admission, ref, this.clock());
    this.#arm();
  }

  owe(admission: string, webhook: string): void {
    this.#stores.jobs.owe(admission, webhook);
  }

  identify(admission: string, digest: string): void {
    this.#endings.identify(admission, digest);
  }

  release(admission: string): void {
    this.#endings.release(admission, this.clock());
    this.#arm();
  }

  settle(ending: Ending): Settled {
    const settled = this.#endings.settle(ending, this.clock());
    this.#arm();
    return settled;
  }

  notify(admission: string, body: string): void {
    this.#endings.notify(admission, body, this.clock());
    this.#arm();
  }

  job(admission: string): MeteredJob | undefined {
    const job = this.#stores.jobs.find(admission);
    return job && describeJob(job);
  }

  openJobs(owner: string, model: string, count: number): MeteredJob[] {
    return this.#stores.jobs.open(owner, model, count);
  }

  jobs(owner: string, model: string | undefined, offset: number, count: number) {
    return this.#stores.jobs.page(owner, model, offset, count);
  }

  gallery(owner: string, before: GalleryCursor | undefined, count: number): GalleryRow[] {
    return this.#stores.gallery.page(owner, before, count, this.clock());
  }

  addToGallery(owner: string, row: GalleryRow): void {
    this.#stores.gallery.add(owner, row, this.clock());
  }

  removeFromGallery(owner: string, key: string): void {
    this.#stores.gallery.remove(owner, key);
  }

  usage(claims: Claims): MeterUsage {
    const held = this.#stores.settings.held(claims);
    return describeUsage(this.#stores, held, this.#admissions.standings(claims, this.clock()));
  }

  account(owner: string, defaults: { readonly defaultPlan: string; readonly plans: string }): MeterAccount | undefined {
    return describeAccount(this.#stores, this.#admissions, owner, defaults, this.clock());
  }

  settings(): AccountSettings {
    return this.#stores.settings.current;
  }

  configure(settings: AccountSettings): void {
    this.#stores.transaction(() => this.#stores.settings.change(settings, this.clock()));
  }

  reset(): void {
    this.#stores.reset(this.clock());
  }

  /** At once here; everywhere else as soon as the isolates read CONTROL. */
  revoke(owner: string, at: number, token?: { readonly id: string; readonly expiresAt: number }): void {
    if (token) this.#stores.settings.revokeToken(token.id, token.expiresAt, this.clock());
    else this.#stores.settings.revokeOwner(owner, at);
  }

  #arm(): void {
    const { jobs, outbox, leases } = this.#stores;
    this.#alarm.arm(jobs.nextDue(), outbox.nextDue(), leases.nextDue());
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring(async () => {
      const now = this.clock();
      const asked = this.#endings.claimDue(now, atOnce).map((job) => this.#follow(job));
      const notices = this.#stores.transaction(() => this.#stores.outbox.claim(now, atOnce));
      const sent = notices.map((notice) => this.#deliver(notice));
      await Promise.all([...asked, ...sent, this.#slices.report(this.clock)]);
      this.#stores.prune(now);
      this.#arm();
    });
  }

  async #follow(job: JobRow): Promise<void> {
    const { model, ref, owner, admission } = job;
    if (ref === null) return;
    const answer = await this.ask({ model, ref, owner, admission }).catch(() => "unreachable" as const);
    if (answer === "unreachable") return;
    const now = this.clock();
    if (answer === "unknown") {
      this.#endings.assume(admission, now);
      return;
    }
    const { status, costMicroUsd, completedAt, media, body } = answer;
    if (body !== undefined) await keepResult(this.env.IMAGES, admission, body);
    const { wantsNotice } = this.#endings.settle(
      { admission, ref: null, status, costMicroUsd, seenAt: now, completedAt, media },
      now,
    );
    if (wantsNotice && body !== undefined) this.#endings.notify(admission, body, now);
  }

  async #deliver(notice: Notice): Promise<void> {
    const { admission: id, url } = notice;
    const body = this.#stores.outbox.body(id);
    const { webhookHosts: hosts, secrets } = await this.#signing();
    const received = await deliverWebhook({ id, url, body }, { secrets, hosts, send: this.send, now: this.clock() });
    this.#stores.transaction(() => this.#stores.outbox.settle(notice, received, this.clock()));
  }

  async #signing() {
    const config = configOf(this.env);
    return { webhookHosts: config.webhookHosts, secrets: await signingKeysOf(config).webhookSecrets() };
  }
}

function configOf(env: Env): Config {
  const reading = readConfig(env);
  if (!reading.ok) throw new Error("misconfigured");
  return reading.config;
}
