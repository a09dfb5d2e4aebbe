// What is known of one request and its answer: made in door.ts, filled in on the way, logged at the end.
import type { Context } from "hono";
import type { Config } from "../config.ts";
import type { JobState } from "../contract/states.ts";
import type { ErrorCode } from "../errors.ts";

export interface Exchange {
  readonly requestId: string;
  readonly startedAt: number;
  /** Whose errors the caller reads. */
  errorShape: "superset" | "openai" | "management";
  /** The pattern of the route that answers, as `/v2/:model/run`. */
  route?: string;
  owner?: string;
  model?: string;
  operation?: string;
  /** The route states that its answers may be kept by whoever they pass; else nobody keeps any. */
  isPublic?: boolean;
  /** Of a refusal, or of what ended an answer that had begun. */
  code?: ErrorCode;
  /** The status of the job that the answer tells of. */
  job?: JobState;
  /** How long the answer waited for whom: `Server-Timing` says it. */
  waitedMs?: Partial<Record<"identity" | "kv" | "meter" | "upstream", number>>;
  cache?: "HIT" | "MISS" | "JOINED" | "BYPASS";
  costMicroUsd?: number;
  /** The answer goes on after its head, and only its end tells the rest: the log line waits for this. */
  logAfter?: Promise<unknown>;
}

export function newExchange(): Exchange {
  return { requestId: crypto.randomUUID(), startedAt: Date.now(), errorShape: "superset" };
}

/** What the door hands to the routes, where Hono has the bindings alone. */
export interface Incoming {
  readonly bindings: Env;
  readonly config: Config;
  readonly exchange: Exchange;
}

export interface AppEnv {
  Bindings: Incoming;
}

export type AppContext = Context<AppEnv>;
