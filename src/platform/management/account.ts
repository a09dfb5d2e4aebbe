// An account as a Durable Object: its books, and what it owes to queues, to the catalogue and to other accounts.
import { DurableObject } from "cloudflare:workers";
import { migrate } from "../../wire/migrate.ts";
import { remote } from "../../wire/remote.ts";
import type { Refusal } from "../queue/views.ts";
import { type Question, type Sum, sumUp } from "./billing-report.ts";
import { type Borrowed, Catalogue } from "./catalogue.ts";
import { Duties, type DutyKind } from "./duties.ts";
import { EndpointBook } from "./endpoint-book.ts";
import type { Endpoint, EndpointChange, EndpointIncludes, EndpointInput } from "./endpoints.ts";
import { includeInPod } from "./includes.ts";
import { type Credit, type Executed, Ledger, nextFullHour } from "./ledger.ts";
import { Neighbours } from "./neighbours.ts";
import { VolumeBook, type VolumeChange } from "./network-volumes.ts";
import type { Pod, PodEvent, Volume } from "./pod.ts";
import { PodBook } from "./pod-book.ts";
import { matches } from "./pod-filter.ts";
import type { PodChange, PodFilter, PodIncludes, PodInput } from "./pod-input.ts";
import { type RegistryAuth, RegistryAuthBook } from "./registry-auths.ts";
import { absent, type Page } from "./rows.ts";
import { steps } from "./schema.ts";
import type { Template } from "./template.ts";
import { TemplateBook } from "./template-book.ts";
import type { TemplateChange } from "./templates.ts";

/** An alarm that failed comes back after this. */
const retryAlarmMs = 10_000;
/** A duty that is performed at once is due all the same, should the object not live to do it. */
const graceMs = 10_000;
/** What is spent with borrowed templates is told in one go for a while. */
const creditDelayMs = 60_000;
/** As many records are completed at a time. */
const atOnce = 20;

type Removed = { readonly removed: true };
const removed: Removed = { removed: true };

export class Account extends DurableObject<Env> {
  readonly #ledger: Ledger;
  readonly #duties: Duties;
  readonly #neighbours: Neighbours;
  readonly #templates: TemplateBook;
  readonly #endpoints: EndpointBook;
  readonly #pods: PodBook;
  readonly #volumes: VolumeBook;
  readonly #auths: RegistryAuthBook;
  readonly #catalogue: Catalogue;
  readonly #name: string;
  #armedAt: number | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    migrate(ctx.storage, steps);
    this.#name = ctx.id.name ?? "";
    this.#duties = new Duties(sql, (duty) => this.#neighbours.perform(duty));
    this.#ledger = new Ledger(sql, (template) => this.#duties.add("credit", template, Date.now() + creditDelayMs));
    this.#templates = new TemplateBook(sql);
    this.#endpoints = new EndpointBook(sql, this.#ledger, this.#templates);
    this.#pods = new PodBook(sql, this.#ledger, this.#templates);
    this.#volumes = new VolumeBook(sql, this.#ledger);
    this.#auths = new RegistryAuthBook(sql);
    this.#catalogue = new Catalogue(sql);
    const books = { ledger: this.#ledger, templates: this.#templates, endpoints: this.#endpoints };
    this.#neighbours = new Neighbours(env, { account: this.#name, sql, now: () => Date.now(), ...books });
    this.#arm();
  }

  listTemplates(withBound: boolean, after: number): Page {
    return this.#templates.page(withBound, after);
  }

  findTemplate(id: string, withBound: boolean): Template | undefined {
    return withBound || !this.#templates.isBound(id) ? this.#templates.find(id) : undefined;
  }

  async createTemplate(template: Template): Promise<Template | Refusal> {
    const created = this.#change(() => this.#owePublication(this.#templates.create(template)));
    if (!("refused" in created) && created.isPublic) await this.#duties.perform("publish", created.id, Date.now());
    return created;
  }

  async updateTemplate(id: string, change: TemplateChange): Promise<Template | Refusal> {
    const known = this.#templates.find(id);
    const refusal = known?.isPublic && change.isPublic === false ? await this.#withdraw(id) : undefined;
    if (refusal) return refusal;
    let followers: string[] = [];
    const updated = this.#change(() => {
      const next = this.#owePublication(this.#templates.update(id, change));
      if (!("refused" in next)) followers = this.#endpoints.follow(next);
      for (const endpoint of followers) this.#owe("configure", endpoint);
      return next;
    });
    if (known) await this.#duties.perform("publish", id, Date.now());
    await Promise.all(followers.map((endpoint) => this.#duties.perform("configure", endpoint, Date.now())));
    return updated;
  }

  async deleteTemplate(id: string): Promise<Refusal | Removed> {
    const refusal =
      this.#templates.refuseRemoval(id) ?? (this.#templates.find(id)?.isPublic ? await this.#withdraw(id) : undefined);
    if (refusal) return refusal;
    // While the catalogue was asked, somebody may have begun to use it here.
    const late = this.#change(() => {
      const refused = this.#templates.refuseRemoval(id);
      if (!refused) this.#templates.remove(id);
      return refused;
    });
    await this.#duties.perform("publish", id, Date.now());
    return late ?? removed;
  }

  /** Takes a public template back. Whatever happens after this, the catalogue hears the truth in the end. */
  async #withdraw(id: string): Promise<Refusal | undefined> {
    this.#change(() => this.#owe("publish", id));
    const answer = await this.#neighbours.withdraw(id);
    return "refused" in answer ? answer : undefined;
  }

  #owePublication(template: Template | Refusal): Template | Refusal {
    if (!("refused" in template) && template.isPublic) this.#owe("publish", template.id);
    return template;
  }

  /** Whether this account uses a template, or is about to. The catalogue asks before one goes. */
  usesTemplate(id: string): boolean {
    return this.#neighbours.isBorrowing(id) || this.#templates.uses(id);
  }

  async listEndpoints(includes: EndpointIncludes, after: number): Promise<Page> {
    const page = this.#endpoints.page(after);
    if (!includes.includeTemplate && !includes.includeWorkers) return page;
    const records = page.items.map((json) => JSON.parse(json) as Endpoint);
    const whole = await inTurns(records, (record) => this.#includeInEndpoint(record, includes));
    return { ...page, items: whole.map((record) => JSON.stringify(record)) };
  }

  async findEndpoint(id: string, includes: EndpointIncludes): Promise<Endpoint | Refusal> {
    const endpoint = this.#endpoints.find(id);
    return endpoint ? this.#includeInEndpoint(endpoint, includes) : absent("endpoint");
  }

  async #includeInEndpoint(endpoint: Endpoint, includes: EndpointIncludes): Promise<Endpoint> {
    const template = includes.includeTemplate ? await this.#neighbours.template(endpoint.templateId) : undefined;
    const workers = includes.includeWorkers ? await this.#neighbours.workersOf(endpoint) : undefined;
    return {
      ...endpoint,
      ...(template && { template: template as Endpoint["template"] }),
      ...(workers && { workers }),
    };
  }

  hasEndpoint(id: string): boolean {
    return this.#endpoints.find(id) !== undefined;
  }

  createEndpoint(id: string, input: EndpointInput): Promise<Endpoint | Refusal> {
    return this.#neighbours.borrow(input.templateId, (borrowed) =>
      this.#configured(id, () => this.#endpoints.create(id, this.#name, input, Date.now(), borrowed)),
    );
  }

  updateEndpoint(id: string, change: EndpointChange): Promise<Endpoint | Refusal> {
    return this.#neighbours.borrow(change.templateId ?? this.#endpoints.find(id)?.templateId, (borrowed) =>
      this.#configured(id, () => this.#endpoints.update(id, change, borrowed)),
    );
  }

  async #configured(id: string, act: () => Endpoint | Refusal): Promise<Endpoint | Refusal> {
    const endpoint = this.#change(() => {
      const made = act();
      if (!("refused" in made)) this.#owe("configure", id);
      return made;
    });
    if (!("refused" in endpoint)) await this.#duties.perform("configure", id, Date.now());
    return endpoint;
  }

  async deleteEndpoint(id: string): Promise<Refusal | Removed> {
    const known = this.#change(() => {
      if (!this.#endpoints.remove(id)) return false;
      this.#owe("wipe", id);
      return true;
    });
    if (!known) return absent("endpoint");
    await this.#duties.perform("wipe", id, Date.now());
    return removed;
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

  /** The workers of all endpoints that the filter lets pass. */
  async listWorkers(filter: PodFilter): Promise<Pod[]> {
    const found: Pod[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page: Page = this.#endpoints.page(after);
      const asked = page.items.map((json) => JSON.parse(json) as Endpoint);
      const wanted = asked.filter(({ id }) => filter.endpointId === undefined || filter.endpointId === id);
      found.push(...(await inTurns(wanted, (endpoint) => this.#neighbours.workersOf(endpoint))).flat());
      after = page.next;
    }
    return found.filter((worker) => matches(worker, filter));
  }

  async findPod(id: string, includes: PodIncludes): Promise<Pod | Refusal> {
    const pod = this.#pods.find(id);
    if (pod) return this.#includeInPod(pod, includes);
    const [worker] = includes.includeWorkers ? await this.listWorkers({ ...includes, id }) : [];
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

  /** The alarm rings when the first duty is due, or an hour is full while something runs. */
  #arm(): void {
    const hour = this.#ledger.hasClocks ? nextFullHour(Date.now()) : undefined;
    const times = [this.#duties.nextDue(), hour].filter((time) => time !== undefined);
    const next = Math.min(...times);
    if (times.length === 0 || (this.#armedAt !== undefined && this.#armedAt <= next)) return;
    this.#armedAt = next;
    this.ctx.waitUntil(this.ctx.storage.setAlarm(next));
  }

  /** Never throws: the runtime would give up on it after a few tries. */
  override async alarm(): Promise<void> {
    this.#armedAt = undefined;
    try {
      this.#change(() => this.#ledger.accrue(Date.now()));
      await this.#duties.performDue(Date.now());
      this.#arm();
    } catch (error) {
      console.error(JSON.stringify({ alarm: "account", error: error instanceof Error ? error.name : "unknown" }));
      await this.ctx.storage.setAlarm(Date.now() + retryAlarmMs);
    }
  }
}

type BillingQuestion = Omit<Question, "from" | "to"> & {
  readonly startTime: number | undefined;
  readonly endTime: number | undefined;
  readonly defaultSpanMs: number;
};

/** Some at a time, in order. */
async function inTurns<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let from = 0; from < items.length; from += atOnce) {
    done.push(...(await Promise.all(items.slice(from, from + atOnce).map(act))));
  }
  return done;
}
