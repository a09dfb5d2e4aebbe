// One statement a route: its method, path, schemas, errors, guards and handler. Hono and OpenAPI are both made of it.
import { zValidator } from "@hono/zod-validator";
import type { Context, Hono } from "hono";
import type * as z from "zod";
import type { Operation } from "../contract/operation.ts";
import type { ErrorCode } from "../errors.ts";
import { once } from "../isolate/once.ts";
import { bodyErrors } from "./body-problem.ts";
import type { AppEnv } from "./exchange.ts";
import { orRefuse } from "./refusals.ts";
import { readSmallJson } from "./small-body.ts";

type Schema = z.ZodType | undefined;

export interface Statement<P extends Schema, Q extends Schema, B extends Schema> extends Omit<Operation, "query"> {
  /** As Hono writes it: `/models/:model`. */
  readonly path: string;
  readonly params?: P;
  readonly query?: Q;
  /** A small body that is read whole and checked before the handler runs. `body` is one that the handler reads itself. */
  readonly json?: B;
}

type Output<S extends Schema> = S extends z.ZodType ? z.output<S> : undefined;

/** What the request says, checked. */
export interface Said<P extends Schema, Q extends Schema, B extends Schema> {
  readonly params: Output<P>;
  readonly query: Output<Q>;
  readonly json: Output<B>;
}

/**
 * What must hold before the handler is asked: a guard says nothing, or throws what the caller is answered with. It makes a
 * promise only where there is something to wait for: on a poll, waiting costs more than most guards do.
 */
export type GuardOf<C> = (call: C) => void | Promise<void>;

/** Asks the guards in their order; undefined where none had to wait. */
export function pass<C>(guards: readonly GuardOf<C>[], call: C, from = 0): Promise<void> | undefined {
  for (let at = from; at < guards.length; at++) {
    const waiting = guards[at]?.(call);
    if (waiting) return waiting.then(() => pass(guards, call, at + 1));
  }
  return undefined;
}

export interface Route<E extends AppEnv> {
  readonly operation: Operation;
  readonly mount: (app: Hono<E>) => void;
}

/** One handler of Hono's for each route: a middleware for each check would cost more than the check. */
export function route<
  E extends AppEnv,
  C,
  P extends Schema = undefined,
  Q extends Schema = undefined,
  B extends Schema = undefined,
>(
  statement: Statement<P, Q, B>,
  callOf: (c: Context<E>) => C,
  /** What must hold before the request is looked at. */
  guards: readonly GuardOf<C>[],
  handle: (call: C, said: Said<P, Q, B>) => Response | Promise<Response>,
): Route<E> {
  const { path, params, query, json, cache = "no-store" } = statement;
  const paramsOf = params && checked("param", params);
  const queryOf = query && unlessUnsaid(query, checked("query", query));
  const answer = async (c: Context<E>): Promise<Response> => {
    const { exchange } = c.env;
    exchange.route = path;
    const call = callOf(c);
    const waiting = pass(guards, call);
    if (waiting) await waiting;
    if (cache === "public") exchange.isPublic = true;
    const said = {
      params: paramsOf && (await paramsOf(c)),
      query: queryOf && (await queryOf(c)),
      json: json && (await readSmallJson(c.req.raw, json)),
    };
    // Awaited here: to answer with a promise of a promise takes two turns more.
    return await handle(call, said as Said<P, Q, B>);
  };
  const method = statement.method.toUpperCase();
  return { operation: operationOf(statement), mount: (app) => app.on([method], [path], answer) };
}

type Check = (c: Context) => unknown;

function checked(place: "param" | "query", schema: z.ZodType): Check {
  const validate = zValidator(place, schema, orRefuse);
  return async (c) => {
    await validate(c, async () => {});
    return c.req.valid(place as never);
  };
}

/** Most requests have no query, and what that means is always the same. */
function unlessUnsaid(schema: z.ZodType, check: Check): Check {
  const unsaid = once(() => schema.safeParse({}));
  return (c) => (c.req.url.includes("?") || !unsaid().success ? check(c) : unsaid().data);
}

/** OpenAPI writes `/models/{model}`. What every checked request may be refused with need not be stated. */
function operationOf<P extends Schema, Q extends Schema, B extends Schema>({
  params,
  json,
  ...statement
}: Statement<P, Q, B>): Operation {
  const { path, query, body, errors = [], ...others } = statement;
  const implied: ErrorCode[] = [];
  const taken = json ?? body;
  if (params || query || taken) implied.push("INVALID_REQUEST");
  if (taken) implied.push(...bodyErrors);
  return {
    ...others,
    path: path.replaceAll(/:(\w+)(\{[^}]*\})?/g, "{$1}"),
    ...(query && { query }),
    ...(taken && { body: taken }),
    errors: [...new Set([...errors, ...implied])],
  };
}
