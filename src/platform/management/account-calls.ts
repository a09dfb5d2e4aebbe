// The calls that an account's object answers, and how it is found.
import { answersWithinMs, type Remote, remote } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import type { ExecutedRow } from "../queue/executed.ts";
import type { Refusal } from "../queue/views.ts";
import type { Question, Sum } from "./billing-report.ts";
import type { Endpoint, EndpointChange, EndpointIncludes, EndpointInput } from "./endpoint.ts";
import type { Pod, PodEvent } from "./pod.ts";
import type { PodChange, PodFilter, PodIncludes, PodInput } from "./pod-input.ts";
import type { RegistryAuth } from "./registry-auth.ts";
import type { Page } from "./rows.ts";
import type { Template, TemplateChange } from "./template-input.ts";
import type { Volume, VolumeChange } from "./volume.ts";

export type Removed = { readonly removed: true };
export const removed: Removed = { removed: true };

export interface KnownEndpoint {
  /** Of a load-balancing one. */
  readonly workerUrls?: readonly string[] | undefined;
}

export type BillingQuestion = Omit<Question, "from" | "to"> & {
  readonly startTime: number | undefined;
  readonly endTime: number | undefined;
  readonly defaultSpanMs: number;
};

export interface AccountCalls {
  listTemplates(withBound: boolean, after: number): Page;
  findTemplate(id: string, withBound: boolean): Template | undefined;
  createTemplate(template: Template): Promise<Template | Refusal>;
  updateTemplate(id: string, change: TemplateChange): Promise<Template | Refusal>;
  deleteTemplate(id: string): Promise<Removed | Refusal>;

  listEndpoints(includes: EndpointIncludes, after: number): Promise<Page>;
  findEndpoint(id: string, includes: EndpointIncludes): Promise<Endpoint | Refusal>;
  createEndpoint(id: string, input: EndpointInput): Promise<Endpoint | Refusal>;
  updateEndpoint(id: string, change: EndpointChange): Promise<Endpoint | Refusal>;
  deleteEndpoint(id: string): Promise<Removed | Refusal>;
  knownEndpoint(id: string): KnownEndpoint | undefined;
  pageOfWorkers(filter: PodFilter, after: number): Promise<Page>;

  listPods(filter: PodFilter, after: number): Promise<Page>;
  findPod(id: string, includes: PodIncludes): Promise<Pod | Refusal>;
  createPod(id: string, input: PodInput): Promise<Pod | Refusal>;
  updatePod(id: string, change: PodChange): Pod | Refusal;
  actOnPod(id: string, event: PodEvent): Pod | Refusal;

  listVolumes(after: number): Page;
  findVolume(id: string): Volume | Refusal;
  createVolume(volume: Volume): Volume;
  updateVolume(id: string, change: VolumeChange): Volume | Refusal;
  deleteVolume(id: string): Removed | Refusal;

  listRegistryAuths(after: number): Page;
  findRegistryAuth(id: string): RegistryAuth | Refusal;
  createRegistryAuth(auth: RegistryAuth, username: string): RegistryAuth | Refusal;
  deleteRegistryAuth(id: string): Removed | Refusal;

  sumUp(question: BillingQuestion): readonly Sum[] | Refusal;
  recordExecuted(endpoint: string, executed: readonly ExecutedRow[]): void;

  recordSpent(endpoint: string, microUsd: number): void;
  spent(): number;
}

/** The calls of the object that knows the public templates of all accounts. */
export interface CatalogueCalls {
  publishTemplate(owner: string, template: Template): void;
  unlistTemplate(owner: string, id: string): void;
  findPublicTemplate(id: string): Template | undefined;
  listPublicTemplates(account: string, after: number): Page;
}

/** No account has this name: a slash is no part of one. */
export const catalogueName = "public/catalogue";

export function catalogueOf(env: Pick<Env, "ACCOUNT">, withinMs = answersWithinMs.needed): Remote<CatalogueCalls> {
  return remote(env.ACCOUNT, catalogueName, withinMs);
}

/** For calls in which the account may ask queues and the catalogue, one after the other. */
export const managesWithinMs = 20_000;

export function accountOf(
  env: Pick<Env, "ACCOUNT">,
  account: string,
  withinMs = answersWithinMs.needed,
): Remote<AccountCalls> {
  return remote(env.ACCOUNT, account, withinMs);
}

type Method = (...args: readonly unknown[]) => Promise<unknown>;

/** The same calls for a route: where the object does not answer, the client is told to come again. */
export function orUnavailable<T extends object>(stub: T): T {
  return new Proxy(stub, {
    get:
      (_, method) =>
      (...args: readonly unknown[]) =>
        answered(Reflect.apply(stub[method as keyof T] as Method, stub, args)),
  });
}

/** A call that failed says nothing of what it did. */
async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    console.warn(JSON.stringify({ account: "no answer", error: error instanceof Error ? error.message : "unknown" }));
    throw new Problem("UNAVAILABLE", "the account cannot be reached", { "Retry-After": "1" });
  }
}
