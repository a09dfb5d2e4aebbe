// An account as a Durable Object: its stores, and the tasks that bring queues and the catalogue in step with them.
import { BesideAlarm, besideRing } from "../../durable/beside-alarm.ts";
import { CheckedObject } from "../../durable/checked-object.ts";
import { migrate } from "../../durable/migrate.ts";
import { OneAlarm } from "../../durable/one-alarm.ts";
import type { ExecutedRow } from "../queue/executed.ts";
import type { Refusal } from "../queue/views.ts";
import type { AccountCalls, BillingQuestion, CatalogueCalls, KnownEndpoint, Removed } from "./account-calls.ts";
import { type Sum, sumUp } from "./billing-report.ts";
import { Catalogue } from "./catalogue.ts";
import type { Endpoint, EndpointChange, EndpointIncludes, EndpointInput } from "./endpoint.ts";
import { EndpointService } from "./endpoint-service.ts";
import { EndpointStore } from "./endpoint-store.ts";
import { includeInPod } from "./includes.ts";
import { Ledger, nextFullHour } from "./ledger.ts";
import type { Pod, PodEvent } from "./pod.ts";
import type { PodChange, PodFilter, PodIncludes, PodInput } from "./pod-input.ts";
import { PodStore } from "./pod-store.ts";
import { Reconciler, retryMs, type TaskKind } from "./reconciler.ts";
import type { RegistryAuth } from "./registry-auth.ts";
import { RegistryAuthStore } from "./registry-auth-store.ts";
import { RemoteObjects } from "./remote-objects.ts";
import { absent, completed, type Page } from "./rows.ts";
import { steps } from "./schema.ts";
import type { Template, TemplateChange } from "./template-input.ts";
import { TemplateService } from "./template-service.ts";
import { TemplateStore } from "./template-store.ts";
import type { Transactions } from "./transactions.ts";
import type { Volume, VolumeChange } from "./volume.ts";
import { VolumeStore } from "./volume-store.ts";

/** A task is tried at once. It falls due all the same, in case the object restarts before it is done. */
const graceMs = 10_000;
const tasksAtOnce = 50;

export class Account extends CheckedObject implements AccountCalls, CatalogueCalls {
  readonly #ledger: Ledger;
  readonly #reconciler: Reconciler;
  readonly #remote: RemoteObjects;
  readonly #templates: TemplateStore;
  readonly #templateService: TemplateService;
  readonly #endpoints: EndpointService;
  readonly #pods: PodStore;
  readonly #volumes: VolumeStore;
  readonly #auths: RegistryAuthStore;
  readonly #catalogue: Catalogue;
  readonly #name: string;
  readonly #alarm: OneAlarm;
  readonly #tasks = new BesideAlarm("account", tasksAtOnce, () => this.#arm());

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    migrate(ctx.storage, steps);
    this.#alarm = new OneAlarm(ctx, "account", () => this.#ring());
    this.#name = ctx.id.name ?? "";
    this.#reconciler = new Reconciler(sql, (task) => this.#remote.perform(task));
    this.#ledger = new Ledger(sql);
    this.#templates = new TemplateStore(sql);
    this.#pods = new PodStore(sql, this.#ledger, this.#templates);
    this.#volumes = new VolumeStore(sql, this.#ledger);
    this.#auths = new RegistryAuthStore(sql);
    this.#catalogue = new Catalogue(sql);
    const endpoints = new EndpointStore(sql, this.#ledger, this.#templates);
    const stores = { ledger: this.#ledger, templates: this.#templates, endpoints };
    this.#remote = new RemoteObjects(env, { account: this.#name, ...stores });
    const transactions: Transactions = {
      account: this.#name,
      change: (act) => this.#change(act),
      enqueue: (kind, id) => this.#enqueue(kind, id),
      perform: (kind, id) => this.#reconciler.perform(kind, id, Date.now()),
    };
    this.#templateService = new TemplateService(transactions, stores);
    this.#endpoints = new EndpointService(transactions, endpoints, this.#remote);
    this.#arm();
  }

  listTemplates(withBound: boolean, after: number): Page {
    return this.#templates.page(withBound, after);
  }

  findTemplate(id: string, withBound: boolean): Template | undefined {
    return this.#templateService.find(id, withBound);
  }

  createTemplate(template: Template): Promise<Template | Refusal> {
    return this.#templateService.create(template);
  }

  updateTemplate(id: string, change: TemplateChange): Promise<Template | Refusal> {
    return this.#templateService.update(id, change);
  }

  deleteTemplate(id: string): Promise<Refusal | Removed> {
    return this.#templateService.delete(id);
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
  pageOfWorkers(filter: PodFilter, after: number): Promise<Page> {
    return this.#endpoints.workers(filter, after);
  }

  knownEndpoint(id: string): KnownEndpoint | undefined {
    return this.#endpoints.known(id);
  }

  /** What the jobs of a public model have cost, all of them. */
  recordSpent(endpoint: string, microUsd: number): void {
    const add = "INSERT INTO spent VALUES (?, ?) ON CONFLICT DO UPDATE SET microUsd = MAX(microUsd, excluded.microUsd)";
    this.ctx.storage.sql.exec(add, endpoint, microUsd);
  }

  /** In micro-USD. */
  spent(): number {
    const query = "SELECT COALESCE(SUM(microUsd), 0) AS sum FROM spent";
    return this.ctx.storage.sql.exec<{ sum: number }>(query).one().sum;
  }

  /** Books the run time that a queue reports. The queue reports it until it has an answer. */
  recordExecuted(endpoint: string, executed: readonly ExecutedRow[]): void {
    this.#change(() => this.#ledger.book(endpoint, executed));
  }

  async listPods(filter: PodFilter, after: number): Promise<Page> {
    const page = this.#pods.page(filter, after);
    if (!Object.entries(filter).some(([name, value]) => name.startsWith("include") && value)) return page;
    return completed<Pod>(page, async (record) => [this.#includeInPod(record, filter)]);
  }

  async findPod(id: string, includes: PodIncludes): Promise<Pod | Refusal> {
    const pod = this.#pods.find(id);
    if (pod) return this.#includeInPod(pod, includes);
    const worker = includes.includeWorkers ? await this.#endpoints.worker({ ...includes, id }) : undefined;
    return worker ?? absent("pod");
  }

  #includeInPod(pod: Pod, includes: PodIncludes): Pod {
    const volume = pod.networkVolumeId === undefined ? undefined : this.#volumes.find(pod.networkVolumeId);
    const template = includes.includeTemplate ? this.#templates.usedBy("pods", pod.id) : undefined;
    return includeInPod(pod, includes, volume && !("refused" in volume) ? volume : undefined, template);
  }

  async createPod(id: string, input: PodInput): Promise<Pod | Refusal> {
    const shared = await this.#remote.publicTemplate(input.templateId);
    return this.#change(() => this.#pods.create(id, this.#name, input, Date.now(), shared));
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

  createRegistryAuth(auth: RegistryAuth, username: string): RegistryAuth | Refusal {
    return this.#change(() => this.#auths.create(auth, username));
  }

  deleteRegistryAuth(id: string): Removed | Refusal {
    return this.#change(() => this.#auths.remove(id));
  }

  /** Sums over the booked hours. Everything that runs is counted up to now. */
  sumUp({ startTime, endTime = Date.now(), defaultSpanMs, ...question }: BillingQuestion): readonly Sum[] | Refusal {
    this.#change(() => this.#ledger.accrue(Date.now()));
    return sumUp(this.ctx.storage.sql, { ...question, from: startTime ?? endTime - defaultSpanMs, to: endTime });
  }

  // These calls are for the public catalogue only.

  publishTemplate(owner: string, template: Template): void {
    this.#change(() => this.#catalogue.publish(owner, template));
  }

  unlistTemplate(owner: string, id: string): void {
    this.#change(() => this.#catalogue.unlist(owner, id));
  }

  findPublicTemplate(id: string): Template | undefined {
    return this.#catalogue.find(id);
  }

  listPublicTemplates(account: string, after: number): Page {
    return this.#catalogue.page(account, after);
  }

  #enqueue(kind: TaskKind, id: string): void {
    this.#reconciler.add(kind, id, Date.now() + graceMs);
  }

  /** Changes all or nothing, then sets the alarm anew. */
  #change<T>(act: () => T): T {
    const result = this.ctx.storage.transactionSync(act);
    this.#arm();
    return result;
  }

  /** Rings when the first task is due, or at the next full hour while something runs. */
  #arm(): void {
    const hour = this.#ledger.hasClocks ? nextFullHour(Date.now()) : undefined;
    this.#alarm.arm(this.#taskDueAt(), hour);
  }

  /** Where as many are under way as may be, the end of one rings for the next, unless this object dies of it. */
  #taskDueAt(): number | undefined {
    const dueAt = this.#reconciler.nextDue();
    return dueAt !== undefined && this.#tasks.free <= 0 ? Math.max(dueAt, Date.now() + retryMs) : dueAt;
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }

  async #ring(): Promise<void> {
    const now = Date.now();
    const tasks = this.ctx.storage.transactionSync(() => {
      this.#ledger.accrue(now);
      return this.#reconciler.claim(now, this.#tasks.free);
    });
    const work = tasks.map(({ kind, id }) => this.#tasks.begin(this.#reconciler.perform(kind, id, now)));
    await besideRing(this.ctx, work);
    this.#arm();
  }
}
