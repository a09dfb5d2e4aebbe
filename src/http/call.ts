// One request for guards and handlers: plain values, none of Hono's.
import type { Context } from "hono";
import type { Config } from "../config.ts";
import type { AppEnv, Exchange } from "./exchange.ts";
import { type Step, timed } from "./server-timing.ts";

/** The environment of routes whose guards and handlers take a call. */
export interface CallEnv<C> {
  Bindings: AppEnv["Bindings"];
  Variables: { call: C };
}

export class HttpCall {
  readonly request: Request;
  readonly path: string;
  /** What the path names: `model`, `job`, `key`. */
  readonly params: Readonly<Record<string, string>>;
  readonly env: Env;
  readonly ctx: Pick<ExecutionContext, "waitUntil" | "passThroughOnException" | "props" | "cache">;
  readonly config: Config;
  readonly exchange: Exchange;

  constructor(c: Pick<Context<AppEnv>, "req" | "env" | "executionCtx">) {
    const { bindings, config, exchange } = c.env;
    this.request = c.req.raw;
    this.path = c.req.path;
    this.params = c.req.param();
    this.env = bindings;
    this.ctx = c.executionCtx;
    this.config = config;
    this.exchange = exchange;
  }

  /** Work that the answer waits for. */
  timed<T>(step: Step, work: Promise<T>): Promise<T> {
    return timed(this.exchange, step, work);
  }

  /** Work that goes on beside the answer, and after it. */
  waitUntil(work: Promise<unknown>): void {
    this.ctx.waitUntil(work);
  }
}
