// An account as a Durable Object: its books, and what it owes to queues, to the catalogue and to other accounts.
import { DurableObject } from "cloudflare:workers";
import { migrate } from "../../wire/migrate.ts";
import { OneAlarm } from "../../wire/one-alarm.ts";
import { remote } from "../../wire/remote.ts";
import type { Refusal } from "../queue/views.ts";
import { type Question, type Sum, sumUp } from "./billing-report.ts";
import { type Borrowed, Catalogue } from "./catalogue.ts";
import { Duties, type DutyKind } from "./duties.ts";
import { EndpointBook } from "./endpoint-book.ts";
import { EndpointDesk } from "./endpoint-desk.ts";
import type { Endpoint, EndpointChange, EndpointIncludes, EndpointInput } from "./endpoints.ts";
import { includeInPod } from "./includes.ts";
import { type Credit, type Executed, Ledger, nextFullHour } from "./ledger.ts";
import { Neighbours } from "./neighbours.ts";
import { VolumeBook, type VolumeChange } from "./network-volumes.ts";
import { inTurns, type Office, type Removed } from "./office.ts";
import type { Pod, PodEvent, Volume } from "./pod.ts";
import { PodBook } from "./pod-book.ts";
import type { PodChange, PodFilter, PodIncludes, PodInput } from "./pod-input.ts";
import { type RegistryAuth, RegistryAuthBook } from "./registry-auths.ts";
import { absent, type Page } from "./rows.ts";
import { steps } from "./schema.ts";
import type { Template } from "./template.ts";
import { TemplateBook } from "./template-book.ts";
import { TemplateDesk } from "./template-desk.ts";
import type { TemplateChange } from "./templates.ts";

/** A duty that is performed at once is due all the same, should the object not live to do it. */
const graceMs = 10_000;
/** What is spent with borrowed templates is told in one go for a while. */
const creditDelayMs = 60_000;

export class Account extends DurableObject<Env> {
  readonly #ledger: Ledger;
  readonly #duties: Duties;
  readonly #neighbours: Neighbours;
  readonly #templates: TemplateBook;
  readonly #templateDesk: TemplateDesk;
  readonly #endpoints: EndpointDesk;
  readonly #pods: PodBook;
  readonly #volumes: VolumeBook;
  readonly #auths: RegistryAuthBook;
  readonly #catalogue: Catalogue;
  readonly #name: string;
  readonly #alarm: OneAlarm;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    migrate(ctx.storage, steps);
    this.#alarm = new OneAlarm(ctx, "account", () => this.#ring());
    this.#name = ctx.id.name ?? "";
    this.#duties = new Duties(sql, (duty) => this.#neighbours.perform(duty));
    this.#ledger = new Ledger(sql, (template) => this.#duties.add("credit", template, Date.now() + creditDelayMs));
    this.#templates = new TemplateBook(sql);
    this.#pods = new PodBook(sql, this.#ledger, this.#templates);
    this.#volumes = new VolumeBook(sql, this.#ledger);
    this.#auths = new RegistryAuthBook(sql);
    this.#catalogue = new Catalogue(sql);
    const endpoints = new EndpointBook(sql, this.#ledger, this.#templates);
    const books = { ledger: this.#ledger, templates: this.#templates, endpoints };
    this.#neighbours = new Neighbours(env, { account: this.#name, sql, now: () => Date.now(), ...books });
    const office: Office = {
      account: this.#name,
      change: (act) => this.#change(act),
      owe: (kind, id) => this.#owe(kind, id),
      perform: (kind, id) => this.#duties.perform(kind, id, Date.now()),
    };
    this.#templateDesk = new TemplateDesk(office, books, this.#neighbours);
    this.#endpoints = new EndpointDesk(office, endpoints, this.#neighbours);
    this.#arm();
  }

  listTemplates(withBound: boolean, after: number): Page {
    return this.#templates.page(withBound, after);
  }

  findTemplate(id: string, withBound: boolean): Template | undefined {
    return this.#templateDesk.find(id, withBound);
  }

  createTemplate(template: Template): Promise<Template | Refusal> {
    return this.#templateDesk.create(template);
  }

  updateTemplate(id: string, change: TemplateChange): Promise<Template | Refusal> {
    return this.#templateDesk.update(id, change);
  }

  deleteTemplate(id: string): Promise<Refusal | Removed> {
    return this.#templateDesk.delete(id);
  }

  /** Whether this account uses a template, or is about to. The catalogue asks before one goes. */
  usesTemplate(id: string): boolean {
    return this.#neighbours.isBorrowing(id) || this.#templates.uses(id);
  }

  listEndpoints(includes: EndpointIncludes, after: number): Promise<Page> {
    return this.#endpoints.list(includes, after);
  }

  findEndpoint(id: string, includes: EndpointIncludes): Promise<Endpoint | Refusal> {
    return this.#endpoints.find(id, includes);
  }

  createEndpoint(id: string, input: EndpointInput): Promise<Endpoint | Refusal> {
    return this.#endpoints.create(id, input);
  }

  updateEndpoint(id: string, change: EndpointChange): Promise<Endpoint | Refusal> {
    return this.#endpoints.update(id, change);
  }

  deleteEndpoint(id: string): Promise<Refusal | Removed> {
    return this.#endpoints.delete(id);
  }

  /** The workers of all endpoints, as Pods. */
  listWorkers(filter: PodFilter): Promise<Pod[]> {
    return this.#endpoints.workers(filter);
  }

  hasEndpoint(id: string): boolean {
    return this.#endpoints.has(id);
  }

  /** What a queue says has run; it says it until it is heard. */
  recordExecuted(endpoint: string, executed: readonly Executed[]): void {
    this.#change(() => this.#ledger.book(endpoint, executed));
  }

  async listPods(filter: PodFilter, after: number): Promise<Page> {
    const page = this.#pods.page(filter, after);
    if (!Object.entries(filter).some(([name, value]) => name.startsWith("include") && value)) return page;
    const records = page.items.map((json) => JSON.parse(json) as Pod);
    const whole = await inTurns(records, (record) => this.#includeInPod(record, filter));
    return { ...page, items: whole.map((record) => JSON.stringify(record)) };
  }

  async findPod(id: string, includes: PodIncludes): Promise<Pod | Refusal> {
    const pod = this.#pods.find(id);
    if (pod) return this.#includeInPod(pod, includes);
    const [worker] = includes.includeWorkers ? await this.#endpoints.workers({ ...includes, id }) : [];
    return worker ?? absent("pod");
  }

  async #includeInPod(pod: Pod, includes: PodIncludes): Promise<Pod> {
    const volume = pod.networkVolumeId === undefined ? undefined : this.#volumes.find(pod.networkVolumeId);
    const template = includes.includeTemplate ? await this.#neighbours.template(pod.templateId) : undefined;
    return includeInPod(pod, includes, volume && !("refused" in volume) ? volume : undefined, template);
  }

  createPod(id: string, input: PodInput): Promise<Pod | Refusal> {
    return this.#neighbours.borrow(input.templateId, (borrowed) =>
      this.#change(() => this.#pods.create(id, this.#name, input, Date.now(), borrowed)),
    );
  }

  updatePod(id: string, change: PodChange): Pod | Refusal {
    return this.#change(() => this.#pods.update(id, change, Date.now()));
  }

  actOnPod(id: string, event: PodEvent): Pod | Refusal {
    return this.#change(() => this.#pods.act(id, event, Date.now()));
  }

  listVolumes(after: number): Page {
    return this.#volumes.page(after);
  }

  findVolume(id: string): Volume | Refusal {
    return this.#volumes.find(id);
  }

  createVolume(volume: Volume): Volume {
    return this.#change(() => this.#volumes.create(volume, Date.now()));
  }

  updateVolume(id: string, change: VolumeChange): Volume | Refusal {
    return this.#change(() => this.#volumes.update(id, change, Date.now()));
  }

  deleteVolume(id: string): Removed | Refusal {
    return this.#change(() => this.#volumes.remove(id, Date.now()));
  }

  listRegistryAuths(after: number): Page {
    return this.#auths.page(after);
  }

  findRegistryAuth(id: string): RegistryAuth | Refusal {
    return this.#auths.find(id);
  }

  createRegistryAuth(auth: RegistryAuth, sealed: Uint8Array): RegistryAuth | Refusal {
    return this.#change(() => this.#auths.create(auth, sealed));
  }

  deleteRegistryAuth(id: string): Removed | Refusal {
    return this.#change(() => this.#auths.remove(id));
  }

  /** Sums over kept hours, everything that runs counted up to now. */
  sumUp({ startTime, endTime = Date.now(), defaultSpanMs, ...question }: BillingQuestion): Sum[] {
    this.#change(() => this.#ledger.accrue(Date.now()));
    return sumUp(this.ctx.storage.sql, { ...question, from: startTime ?? endTime - defaultSpanMs, to: endTime });
  }

  /** Another account tells what it spent with a template of this one. */
  async creditTemplate(id: string, from: string, credit: Credit): Promise<void> {
    const template = this.#change(() => this.#templates.credit(id, from, credit));
    if (!template?.isPublic) return;
    this.#change(() => this.#owe("publish", id));
  }

  // What follows is asked of the public catalogue only.

  publishTemplate(owner: string, template: Template): void {
    this.#change(() => this.#catalogue.publish(owner, template));
  }

  unlistTemplate(owner: string, id: string): void {
    this.#change(() => this.#catalogue.unlist(owner, id));
  }

  withdrawTemplate(owner: string, id: string): Promise<Refusal | { withdrawn: true }> {
    return this.#catalogue.withdraw(owner, id, (account) => remote(this.env.ACCOUNT, account).usesTemplate(id));
  }

  borrowTemplate(id: string, account: string): Borrowed | undefined {
    return this.#change(() => this.#catalogue.borrow(id, account));
  }

  findPublicTemplate(id: string): Template | undefined {
    return this.#catalogue.find(id);
  }

  listPublicTemplates(account: string, after: number): Page {
    return this.#catalogue.page(account, after);
  }

  #owe(kind: DutyKind, id: string): void {
    this.#duties.add(kind, id, Date.now() + graceMs);
  }

  /** All or nothing, and the alarm follows. */
  #change<T>(act: () => T): T {
    const result = this.ctx.storage.transactionSync(act);
    this.#arm();
    return result;
  }

  /** The first duty is due, or an hour is full while something runs. */
  #arm(): void {
    const hour = this.#ledger.hasClocks ? nextFullHour(Date.now()) : undefined;
    this.#alarm.arm(this.#duties.nextDue(), hour);
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }

  async #ring(): Promise<void> {
    this.#change(() => this.#ledger.accrue(Date.now()));
    await this.#duties.performDue(Date.now());
    this.#arm();
  }
}

type BillingQuestion = Omit<Question, "from" | "to"> & {
  readonly startTime: number | undefined;
  readonly endTime: number | undefined;
  readonly defaultSpanMs: number;
};
