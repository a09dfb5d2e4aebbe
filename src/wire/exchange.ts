// What is known of the exchange in hand: made at the door, filled in by whoever learns more, logged at the end.
import type { Context } from "hono";
import type { Config } from "../config.ts";
import type { JobState } from "../contract/states.ts";
import type { ErrorCode } from "../errors.ts";

export interface Exchange {
  readonly requestId: string;
  readonly startedAt: number;
  /** Whose errors the caller reads. */
  errorShape: "superset" | "openai" | "management";
  owner?: string;
  model?: string;
  operation?: string;
  /** Of a refusal, or of what ended an answer that had begun. */
  code?: ErrorCode;
  /** The status of the job that the answer tells of. */
  job?: JobState;
  cache?: "HIT" | "MISS" | "JOINED" | "BYPASS";
  costMicroUsd?: number;
  /** The answer goes on after its head, and only its end tells the rest: the log line waits for this. */
  logAfter?: Promise<unknown>;
}

export interface AppEnv {
  Bindings: Env;
  Variables: { config: Config; exchange: Exchange };
}

export type AppContext = Context<AppEnv>;
