// USER_METER: one object a payer. Calls come in, each one turn; one alarm does all that time does.
import { DurableObject } from "cloudflare:workers";
import { type Config, readConfig } from "../../config.ts";
import { OneAlarm } from "../../wire/one-alarm.ts";
import { remote } from "../../wire/remote.ts";
import type { Send } from "../../wire/webhook.ts";
import { keepResult } from "../kept-result.ts";
import { signingKeysOf } from "../signing.ts";
import type { AccountSettings } from "./account-settings.ts";
import { Admissions, lost, needsLease, needsNetwork, type Verdict } from "./admissions.ts";
import { Bindings } from "./bindings.ts";
import { type Budget, budgetName } from "./budget.ts";
import { BudgetSlices } from "./budget-slices.ts";
import { deliverWebhook } from "./client-webhook.ts";
import { Endings } from "./endings.ts";
import { describeJob, type Job } from "./job.ts";
import { MeterStores } from "./meter-stores.ts";
import type {
  AdmitAnswer,
  AdmitRequest,
  Amendment,
  AskUpstream,
  Binding,
  Claims,
  Ending,
  GalleryCalls,
  GalleryCursor,
  GalleryRow,
  HandedOut,
  Hit,
  MeteredJob,
  Metering,
  Settled,
} from "./metering.ts";
import { Network } from "./network.ts";
import type { OwedEnd, ShareEnd } from "./network-ends.ts";
import type { Notice } from "./outbox.ts";
import { dayMs } from "./periods.ts";
import { Released } from "./released.ts";
import { describeUsage, type MeterTotals, type MeterUsage, totalsOf } from "./usage.ts";

/** Questions, notices, and ends for the network, under way at once. */
const atOnce = 6;
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
  readonly #stores: MeterStores;
  readonly #bindings: Bindings;
  readonly #endings: Endings;
  readonly #admissions: Admissions;
  readonly #slices: BudgetSlices;
  readonly #network: Network;
  readonly #released = new Released();
  readonly #alarm: OneAlarm;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#stores = new MeterStores(ctx.storage, () => this.clock());
    this.#bindings = new Bindings(this.#stores);
    this.#endings = new Endings(this.#stores, this.#bindings);
    this.#admissions = new Admissions(this.#stores);
    this.#slices = new BudgetSlices(ctx.id.toString(), this.#stores, () => remote<Budget>(env.BUDGET, budgetName));
    this.#network = new Network(env.USER_METER as unknown as DurableObjectNamespace<UserMeter>);
    this.#alarm = new OneAlarm(ctx, "user-meter", this.#armedAt());
  }

  admit(request: AdmitRequest): AdmitAnswer | Promise<AdmitAnswer> {
    this.bind(request.binds ?? []);
    const verdict = this.#admit(request, false);
    if (verdict === needsNetwork || verdict === needsLease) return this.#askAndAdmit(request, verdict);
    return verdict;
  }

  #admit(request: AdmitRequest, networkAdmitted: boolean): Verdict {
    const now = this.clock();
    if (this.#released.has(request.admission, now)) return lost;
    this.#endings.endOverdue(now);
    const verdict = this.#admissions.admit(request, now, networkAdmitted);
    this.#arm();
    return verdict;
  }

  /** Others are admitted meanwhile, so the rules are asked anew after each answer. */
  async #askAndAdmit(request: AdmitRequest, first: Verdict): Promise<AdmitAnswer> {
    const { admission, network, reserveMicroUsd } = request;
    const answer = await this.#askAll(first, reserveMicroUsd, {
      askNetwork: () => this.#network.admit(network ?? "", request),
      again: () => this.#admit(request, true),
    });
    if (network !== undefined && !answer.admitted) this.#tellNetworkLater({ admission, network, end: null });
    return answer;
  }

  async #askAll(
    first: Verdict,
    neededMicroUsd: number,
    { askNetwork, again }: { askNetwork: () => Promise<AdmitAnswer>; again: () => Verdict },
  ): Promise<AdmitAnswer> {
    let verdict = first;
    if (verdict === needsNetwork) {
      const answer = await askNetwork().catch(() => networkAway);
      if (!answer.admitted) return answer;
      verdict = again();
    }
    if (verdict === needsLease) {
      const answer = await this.#slices.admit(neededMicroUsd, this.clock, () => {
        const admitted = again();
        return typeof admitted === "symbol" ? undefined : admitted;
      });
      this.#arm();
      return answer;
    }
    return verdict === needsNetwork ? networkAway : verdict;
  }

  #tellNetworkLater(end: OwedEnd): void {
    this.#stores.transaction(() => {
      this.#stores.touch(this.clock());
      this.#stores.networkEnds.owe(end, this.clock());
    });
    this.#arm();
  }

  amend(admission: string, amendment: Amendment): AdmitAnswer | Promise<AdmitAnswer> {
    const again = (networkAdmitted: boolean) => {
      const verdict = this.#admissions.amend(admission, amendment, this.clock(), networkAdmitted);
      this.#arm();
      return verdict;
    };
    const verdict = again(false);
    if (verdict !== needsNetwork && verdict !== needsLease) return verdict;
    const network = this.#stores.jobs.findOpen(admission)?.network ?? "";
    return this.#askAll(verdict, amendment.reserveMicroUsd, {
      askNetwork: () => this.#network.amend(network, admission, amendment),
      again: () => again(true),
    });
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

  countHit(hit: Hit): AdmitAnswer {
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
    return describeUsage(this.#stores, this.#admissions.standings(claims, this.clock()));
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

  revokedAt(owner: string): number | undefined {
    return this.#stores.revocations.revokedAt(owner);
  }

  #endOverdue(): void {
    this.#endings.endOverdue(this.clock());
    this.#arm();
  }

  #dueAt(): number {
    const { jobs, outbox, leases, networkEnds } = this.#stores;
    const moments = [jobs.nextDue(), outbox.nextDue(), leases.nextDue(), networkEnds.nextDue()];
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
    const silentAt = this.#stores.activeAt + keptMs;
    this.#alarm.arm(
      this.#dueAt(),
      this.#endings.areUnasked ? now : undefined,
      silentAt > now ? silentAt : now + keptMs,
    );
    this.#stores.alarmAt = this.#alarm.at ?? null;
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring(async () => {
      const now = this.clock();
      const { jobs, notices, ends } = this.#stores.transaction(() => ({
        jobs: this.#endings.claimDue(now, atOnce),
        notices: this.#stores.outbox.claim(now, atOnce),
        ends: this.#stores.networkEnds.claim(now, atOnce),
      }));
      const [followed, delivered] = [jobs.map((job) => this.#follow(job)), notices.map((one) => this.#deliver(one))];
      const told = ends.map((end) => this.#tellNetwork(end));
      await Promise.all([...followed, ...delivered, ...told, this.#slices.report(this.clock)]);
      if (this.#stores.isWorthless(now, keptMs)) return this.#empty();
      this.#arm();
      this.#stores.prune(now);
    });
  }

  /** Gone, as if there had been nobody: the next row makes the tables anew. */
  async #empty(): Promise<void> {
    await this.ctx.blockConcurrencyWhile(async () => {
      await this.#alarm.stop();
      await this.ctx.storage.deleteAll();
      this.#stores.reopen();
    });
  }

  async #follow(job: Job): Promise<void> {
    const { model, upstreamId, owner, admission, expiresAt } = job;
    if (upstreamId === null) return;
    const askedAt = this.clock();
    const answer = await this.ask({ model, upstreamId, owner, admission }).catch(() => "unreachable" as const);
    const now = this.clock();
    if (typeof answer === "object") await this.#settleAnswer(answer, { admission, upstreamId, askedAt }, now);
    /** It was the last question: whatever is not known by now is assumed. */
    if (answer === "unknown" || expiresAt <= askedAt) this.#endings.assume(admission, now);
  }

  async #settleAnswer(
    answer: Exclude<Awaited<ReturnType<AskUpstream>>, string>,
    asked: Pick<Job, "admission"> & { upstreamId: string; askedAt: number },
    now: number,
  ): Promise<void> {
    const { status, costMicroUsd, completedAt, media, body } = answer;
    if (body !== undefined) await keepResult(this.env.IMAGES, asked.admission, body);
    const { wantsNotice, admission } = this.#endings.settle(
      { ...asked, status, costMicroUsd, seenAt: now, completedAt, media },
      now,
    );
    if (wantsNotice && body !== undefined) this.#endings.notify(admission, body, now);
  }

  async #tellNetwork(end: OwedEnd): Promise<void> {
    const told = await this.#network.tell(end).then(
      () => true,
      () => false,
    );
    if (told) this.#stores.transaction(() => this.#stores.networkEnds.told(end));
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

const networkAway: AdmitAnswer = {
  admitted: false,
  code: "METER_UNAVAILABLE",
  detail: "The quota of the caller's network cannot be asked.",
  retryAfterSeconds: 1,
};

function configOf(env: Env): Config {
  const reading = readConfig(env);
  if (!reading.ok) throw new Error("misconfigured");
  return reading.config;
}
