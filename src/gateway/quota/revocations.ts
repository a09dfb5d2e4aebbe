// What the operator revoked of one payer's: it counts here at once, and elsewhere when the isolates have read CONTROL.
import { isIssuedBefore } from "../operator-settings/issued-before.ts";
import type { Bearer } from "./metering.ts";
import type { Tables } from "./tables.ts";

export class Revocations {
  readonly #sql: SqlStorage;
  readonly #tables: Tables;
  /** Read when it is first asked for: most payers have none. */
  #known: Map<string, number> | undefined;

  constructor(sql: SqlStorage, tables: Tables) {
    this.#sql = sql;
    this.#tables = tables;
  }

  get #revoked(): Map<string, number> {
    this.#known ??= this.#read();
    return this.#known;
  }

  #read(): Map<string, number> {
    if (!this.#tables.has("revocations")) return new Map();
    const rows = this.#sql.exec<{ name: string; at: number }>("SELECT name, at FROM revocations").toArray();
    return new Map(rows.map(({ name, at }) => [name, at]));
  }

  /** Each was of a token that has expired since. A user's stays for good. */
  areOver(now: number): boolean {
    return [...this.#revoked].every(([name, at]) => name.startsWith(tokenPrefix) && at <= now);
  }

  /** Whatever was issued to the owner up to this moment. */
  revokeOwner(owner: string, at: number): void {
    this.#revoke(ownerKey(owner), Math.max(at, this.#revoked.get(ownerKey(owner)) ?? 0));
  }

  /** Kept until the token would have expired by itself. */
  revokeToken(tokenId: string, expiresAt: number, now: number): void {
    for (const [name, at] of this.#revoked) {
      if (name.startsWith(tokenPrefix) && at < now) this.#forget(name);
    }
    this.#revoke(tokenKey(tokenId), expiresAt);
  }

  covers(owner: string, { issuedAt, tokenId }: Bearer): boolean {
    if (this.#revoked.size === 0) return false;
    const revokedAt = this.#revoked.get(ownerKey(owner));
    if (revokedAt !== undefined && isIssuedBefore(issuedAt, revokedAt)) return true;
    return tokenId !== undefined && this.#revoked.has(tokenKey(tokenId));
  }

  revokedAt(owner: string): number | undefined {
    return this.#revoked.get(ownerKey(owner));
  }

  #revoke(name: string, at: number): void {
    this.#tables.need("revocations");
    this.#revoked.set(name, at);
    this.#sql.exec("INSERT OR REPLACE INTO revocations (name, at) VALUES (?, ?)", name, at);
  }

  #forget(name: string): void {
    this.#revoked.delete(name);
    this.#sql.exec("DELETE FROM revocations WHERE name = ?", name);
  }
}

const tokenPrefix = "token:";
const tokenKey = (tokenId: string) => `${tokenPrefix}${tokenId}`;
const ownerKey = (owner: string) => `owner:${owner}`;
