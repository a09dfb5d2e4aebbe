// USER_METER: one object a payer. Calls come in, each one turn; one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import { type Config, readConfig } from "../../config.ts";
import { migrate } from "../../wire/migrate.ts";
import { remote } from "../../wire/remote.ts";
import type { Send } from "../../wire/webhook.ts";
import { signingKeysOf } from "../signing.ts";
import type { AccountSettings } from "./account-settings.ts";
import { type Budget, budgetName } from "./budget.ts";
import { BudgetSlices } from "./budget-slices.ts";
import { deliverWebhook } from "./client-webhook.ts";
import { type Claims, Meter, needsLease } from "./meter.ts";
import type { JobRow } from "./metered-jobs.ts";
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
import { keepResult } from "./results.ts";
import { steps } from "./schema.ts";
import { describeUsage, type MeterUsage } from "./usage.ts";

/** Questions, and notices, under way at once. */
const atOnce = 6;
/** An alarm that failed comes back after this. */
const retryAlarmMs = 1000;

export class UserMeter extends DurableObject<Env> implements Metering, GalleryCalls {
  /** Tests set their own. */
  clock: () => number = () => Date.now();
  send: Send = (request) => fetch(request);
  /** Set by the room that knows the upstream. */
  ask: AskUpstream = async () => "unreachable";
  readonly #meter: Meter;
  readonly #slices: BudgetSlices;
  #armedAt: number | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    migrate(ctx.storage, steps);
    this.#meter = new Meter(ctx.storage);
    this.#slices = new BudgetSlices(ctx.id.toString(), this.#meter, remote<Budget>(env.BUDGET, budgetName));
    this.#arm();
  }

  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    const answer = this.#meter.admit(request, this.clock());
    if (answer === needsLease) return this.#leaseAndAdmit(request);
    this.#arm();
    return answer;
  }

  /** Others are admitted meanwhile, so the rules are asked anew once there is a slice. */
  async #leaseAndAdmit(request: AdmitRequest): Promise<AdmitAnswer> {
    const answer = await this.#slices.admit(request.reserveMicroUsd, this.clock, () => {
      const admitted = this.#meter.admit(request, this.clock());
      return admitted === needsLease ? undefined : admitted;
    });
    this.#arm();
    return answer;
  }

  bind(admission: string, ref: string): void {
    this.#meter.bind(admission, ref, this.clock());
    this.#arm();
  }

  owe(admission: string, webhook: string): void {
    this.#meter.jobs.owe(admission, webhook);
  }

  release(admission: string): void {
    this.#meter.release(admission, this.clock());
    this.#arm();
  }

  settle(ending: Ending): Settled {
    const settled = this.#meter.settle(ending, this.clock());
    this.#arm();
    return settled;
  }

  notify(admission: string, body: string): void {
    this.#meter.notify(admission, body, this.clock());
    this.#arm();
  }

  job(admission: string): MeteredJob | undefined {
    return this.#meter.job(admission);
  }

  openJobs(owner: string, model: string, count: number): MeteredJob[] {
    return this.#meter.jobs.open(owner, model, count);
  }

  jobs(owner: string, model: string | undefined, offset: number, count: number) {
    return this.#meter.jobs.page(owner, model, offset, count);
  }

  gallery(owner: string, before: GalleryCursor | undefined, count: number): GalleryRow[] {
    return this.#meter.gallery.page(owner, before, count, this.clock());
  }

  removeFromGallery(owner: string, key: string): void {
    this.#meter.gallery.remove(owner, key);
  }

  usage(claims: Claims): MeterUsage {
    return describeUsage(this.#meter, claims, this.clock());
  }

  settings(): AccountSettings {
    return this.#meter.settings.current;
  }

  configure(settings: AccountSettings): void {
    this.#meter.configure(settings, this.clock());
  }

  reset(): void {
    this.#meter.reset(this.clock());
  }

  /** At once here; everywhere else as soon as the isolates read CONTROL. */
  revoke(owner: string, at: number, token?: { readonly id: string; readonly expiresAt: number }): void {
    if (token) this.#meter.settings.revokeToken(token.id, token.expiresAt, this.clock());
    else this.#meter.settings.revokeOwner(owner, at);
  }

  revokedAt(owner: string): number | undefined {
    return this.#meter.settings.revokedAt(owner);
  }

  /** The alarm rings when the first thing is due, or earlier: it is always recomputed from what is stored. */
  #arm(): void {
    const next = this.#meter.nextDue();
    if (next === undefined || (this.#armedAt !== undefined && this.#armedAt <= next)) return;
    this.#armedAt = next;
    this.ctx.waitUntil(this.ctx.storage.setAlarm(next));
  }

  /** Never throws: the runtime would give up on it after a few tries, and every reservation with it. */
  override async alarm(): Promise<void> {
    this.#armedAt = undefined;
    try {
      const now = this.clock();
      const asked = this.#meter.claimDue(now, atOnce).map((job) => this.#follow(job));
      const notices = this.#meter.transaction(() => this.#meter.outbox.claim(now, atOnce));
      const sent = notices.map((notice) => this.#deliver(notice));
      await Promise.all([...asked, ...sent, this.#slices.report(this.clock)]);
      this.#meter.prune(now);
      this.#arm();
    } catch (error) {
      const name = error instanceof Error ? error.name : "unknown";
      console.error(JSON.stringify({ alarm: "user-meter", error: name }));
      await this.ctx.storage.setAlarm(Date.now() + retryAlarmMs);
    }
  }

  async #follow(job: JobRow): Promise<void> {
    const { model, ref, owner, admission } = job;
    if (ref === null) return;
    const answer = await this.ask({ model, ref, owner, admission }).catch(() => "unreachable" as const);
    if (answer === "unreachable") return;
    const now = this.clock();
    if (answer === "unknown") {
      this.#meter.assume(admission, now);
      return;
    }
    const { status, costMicroUsd, completedAt, media, body } = answer;
    if (body !== undefined) await keepResult(this.env.IMAGES, admission, body);
    const { wantsNotice } = this.#meter.settle(
      { admission, ref: null, status, costMicroUsd, seenAt: now, completedAt, media },
      now,
    );
    if (wantsNotice && body !== undefined) this.#meter.notify(admission, body, now);
  }

  async #deliver(notice: Notice): Promise<void> {
    const { admission: id, url } = notice;
    const body = this.#meter.outbox.body(id);
    const { webhookHosts: hosts, secrets } = await this.#signing();
    const received = await deliverWebhook({ id, url, body }, { secrets, hosts, send: this.send, now: this.clock() });
    this.#meter.transaction(() => this.#meter.outbox.settle(notice, received, this.clock()));
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
