// What is known of the exchange in hand: made at the door, filled in by whoever learns more, logged at the end.
import type { Context } from "hono";
import type { Config } from "../config.ts";

export interface Exchange {
  readonly requestId: string;
  readonly startedAt: number;
  /** Whose errors the caller reads. */
  errorShape: "superset" | "openai" | "management";
  owner?: string;
  model?: string;
  operation?: string;
  cache?: "HIT" | "MISS" | "JOINED" | "BYPASS";
  costMicroUsd?: number;
}

export interface AppEnv {
  Bindings: Env;
  Variables: { config: Config; exchange: Exchange };
}

export type AppContext = Context<AppEnv>;
