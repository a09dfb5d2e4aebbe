// CONTROL: the operator's settings and revocations, in one place that every isolate reads.
import { CheckedObject } from "../../durable/checked-object.ts";
import { migrate } from "../../durable/migrate.ts";
import { OneAlarm } from "../../durable/one-alarm.ts";
import { inTime } from "../../isolate/in-time.ts";
import { publishSnapshot } from "./control-snapshot.ts";
import type { ControlChanges, ModelSwitch, Plan, Row } from "./control-view.ts";

/** Every row carries the version that wrote it, so that an isolate reads only what it has not seen. */
const steps = [
  `CREATE TABLE latest (version INTEGER NOT NULL);
   INSERT INTO latest VALUES (0);
   CREATE TABLE plans (name TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE models (name TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE revoked_users (name TEXT PRIMARY KEY, value INTEGER NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
   CREATE TABLE revoked_tokens (name TEXT PRIMARY KEY, value INTEGER NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
   CREATE INDEX revoked_users_by_version ON revoked_users (version);
   CREATE INDEX revoked_tokens_by_version ON revoked_tokens (version);
   CREATE INDEX revoked_tokens_by_expiry ON revoked_tokens (value);`,
  "CREATE TABLE ceilings (name TEXT PRIMARY KEY, value INTEGER NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE TABLE published (version INTEGER NOT NULL)",
];

type Table = "plans" | "models" | "revoked_users" | "revoked_tokens" | "ceilings";

/** The budget of the whole app; there is no other. */
const app = "app";

/** So long does the operator wait for KV; what KV has not taken by then is owed. */
const publishedWithinMs = 1_000;
/** KV takes one write a second. */
const republishMs = 2_000;

export class Control extends CheckedObject {
  readonly #sql: SqlStorage;
  readonly #alarm: OneAlarm;
  #publishing: Promise<void> | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#sql = ctx.storage.sql;
    this.#alarm = new OneAlarm(ctx, "CONTROL", async () => ctx.waitUntil(this.#publish()));
    migrate(ctx.storage, steps);
  }

  override alarm(): Promise<void> {
    return this.#alarm.ring();
  }

  /** Undefined where nothing changed. */
  snapshot(sinceVersion: number): ControlChanges | undefined {
    const version = this.#version();
    if (this.#publishedVersion() !== version && this.#alarm.at === undefined) this.#alarm.arm(Date.now());
    if (sinceVersion === version) return undefined;
    const restarted = sinceVersion > version;
    return { ...this.#changesSince(restarted ? 0 : sinceVersion), restarted };
  }

  #changesSince(since: number): ControlChanges {
    return {
      restarted: false,
      version: this.#version(),
      plans: this.#changed<string>("plans", since).map(parseValue<Plan>),
      models: this.#changed<string>("models", since).map(parseValue<ModelSwitch>),
      users: this.#changed<number>("revoked_users", since),
      tokens: this.#changed<number>("revoked_tokens", since),
      ceilings: this.#changed<number>("ceilings", since),
    };
  }

  model(name: string): ModelSwitch | undefined {
    const row = this.#sql.exec<{ value: string }>("SELECT value FROM models WHERE name = ?", name).toArray()[0];
    return row && JSON.parse(row.value);
  }

  setModel(name: string, value: ModelSwitch): Promise<void> {
    return this.#write("models", name, JSON.stringify(value));
  }

  setPlan(name: string, value: Plan): Promise<void> {
    return this.#write("plans", name, JSON.stringify(value));
  }

  /** Whether the operator gave the app's budget a ceiling; what it is, BUDGET knows. */
  setCeiling(isSet: boolean): Promise<void> {
    return this.#write("ceilings", app, isSet ? 1 : 0);
  }

  /** Whatever was issued to the user up to a moment is worth nothing. Kept for good: an app's JWT may live long. */
  revokeUser(owner: string, atMs: number): Promise<void> {
    const earlier = this.#sql
      .exec<{ value: number }>("SELECT value FROM revoked_users WHERE name = ?", owner)
      .toArray();
    return this.#write("revoked_users", owner, Math.max(atMs, earlier[0]?.value ?? 0));
  }

  /** Kept until the token would have expired by itself. */
  revokeToken(tokenId: string, expiresAtMs: number, nowMs: number): Promise<void> {
    this.#sql.exec("DELETE FROM revoked_tokens WHERE value < ?", nowMs);
    return this.#write("revoked_tokens", tokenId, expiresAtMs);
  }

  #version(): number {
    return this.#sql.exec<{ version: number }>("SELECT version FROM latest").one().version;
  }

  #changed<T extends string | number>(table: Table, since: number): Row<T>[] {
    const select = `SELECT name, value FROM ${table} WHERE version > ?`;
    return this.#sql.exec<{ name: string; value: T }>(select, since).toArray();
  }

  /** The row is there when this returns; its promise is KV's. */
  #write(table: Table, name: string, value: string | number): Promise<void> {
    const version = this.#version() + 1;
    this.#sql.exec("UPDATE latest SET version = ?", version);
    this.#sql.exec(
      `INSERT INTO ${table} VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET value = ?2, version = ?3`,
      name,
      value,
      version,
    );
    return inTime(publishedWithinMs, this.#publish()).catch(() => {});
  }

  /** The version that KV was last told; undefined where it was told none. */
  #publishedVersion(): number | undefined {
    return this.#sql.exec<{ version: number }>("SELECT version FROM published").toArray()[0]?.version;
  }

  #publish(): Promise<void> {
    this.#publishing ??= this.#publishLatest().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  /** A debt until KV has it: the alarm goes on. */
  async #publishLatest(): Promise<void> {
    while (this.#publishedVersion() !== this.#version()) {
      const all = this.#changesSince(0);
      this.#alarm.arm(Date.now() + republishMs);
      if (!(await publishSnapshot(this.env.IMAGES, all))) return;
      this.#sql.exec("DELETE FROM published");
      this.#sql.exec("INSERT INTO published VALUES (?)", all.version);
    }
  }
}

function parseValue<T>({ name, value }: Row<string>): Row<T> {
  return { name, value: JSON.parse(value) };
}
