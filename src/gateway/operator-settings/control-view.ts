// What an isolate knows of the operator's settings, and how it catches up with them.
import { isIssuedBefore } from "./issued-before.ts";
import type { Rule } from "./rules.ts";

export interface Plan {
  rules: Rule[];
}

export interface ModelSwitch {
  enabled: boolean;
  /** Serves an endpoint that the catalog does not know. */
  passthrough: boolean;
  /** What one request of a passthrough is reserved at. */
  maxUsd?: number | undefined;
}

export interface Row<T> {
  name: string;
  value: T;
}

/** What changed after the version that was asked about. */
export interface ControlChanges {
  /** The storage that wrote that version is gone: this is all there is. */
  restarted: boolean;
  version: number;
  plans: Row<Plan>[];
  models: Row<ModelSwitch>[];
  /** Owners, and the moment up to which they are revoked. */
  users: Row<number>[];
  /** The tokens' ids, and when each expires by itself. */
  tokens: Row<number>[];
  /** 1 where the app's budget has a ceiling. */
  ceilings: Row<number>[];
}

interface Bearer {
  readonly owner: string;
  readonly issuedAt: number;
  readonly tokenId?: string;
}

export class ControlView {
  #version = 0;
  readonly #plans = new Map<string, Plan>();
  readonly #models = new Map<string, ModelSwitch>();
  readonly #users = new Map<string, number>();
  readonly #tokens = new Map<string, number>();
  #hasCeiling: boolean | undefined;

  get version(): number {
    return this.#version;
  }

  get plans(): ReadonlyMap<string, Plan> {
    return this.#plans;
  }

  get models(): ReadonlyMap<string, ModelSwitch> {
    return this.#models;
  }

  /** Whether the operator gave the app's budget a ceiling; undefined leaves it to the deployment's settings. */
  get hasCeiling(): boolean | undefined {
    return this.#hasCeiling;
  }

  isRevoked({ owner, issuedAt, tokenId }: Bearer): boolean {
    const revokedAt = this.#users.get(owner);
    if (revokedAt !== undefined && isIssuedBefore(issuedAt, revokedAt)) return true;
    return tokenId !== undefined && this.#tokens.has(tokenId);
  }

  /** Answers may come out of order: an older one has nothing that a newer one has not. */
  apply(changes: ControlChanges, now: number): void {
    if (changes.restarted) this.#clear();
    else if (changes.version <= this.#version) return;
    this.#version = changes.version;
    for (const { name, value } of changes.plans) this.#plans.set(name, value);
    for (const { name, value } of changes.models) this.#models.set(name, value);
    for (const { name, value } of changes.users) this.#users.set(name, value);
    for (const { name, value } of changes.tokens) this.#tokens.set(name, value);
    for (const { value } of changes.ceilings) this.#hasCeiling = value === 1;
    for (const [tokenId, expiresAt] of this.#tokens) if (expiresAt < now) this.#tokens.delete(tokenId);
  }

  #clear(): void {
    for (const known of [this.#plans, this.#models, this.#users, this.#tokens]) known.clear();
    this.#hasCeiling = undefined;
  }
}
