// One statement a route: its method, path, schemas, errors, guards and handler. Hono and OpenAPI are both made of it.
import { zValidator } from "@hono/zod-validator";
import type { Context, Hono, Env as HonoEnv } from "hono";
import type * as z from "zod";
import type { Operation } from "../contract/operation.ts";
import type { ErrorCode } from "../errors.ts";
import { once } from "../isolate/once.ts";
import { bodyErrors } from "./body-problem.ts";
import type { AppContext } from "./exchange.ts";
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

export interface Route<E extends HonoEnv> {
  readonly operation: Operation;
  readonly mount: (app: Hono<E>) => void;
}

/** One handler of Hono's for each route: a middleware for each check would cost more than the check. */
export function route<
  E extends HonoEnv,
  C,
  P extends Schema = undefined,
  Q extends Schema = undefined,
  B extends Schema = undefined,
>(
  statement: Statement<P, Q, B>,
  /** What must hold before the request is looked at. */
  prepare: (c: Context<E>) => Promise<C>,
  handle: (call: C, said: Said<P, Q, B>) => Response | Promise<Response>,
): Route<E> {
  const { path, params, query, json, cache = "no-store" } = statement;
  const paramsOf = params && checked("param", params);
  const queryOf = query && unlessUnsaid(query, checked("query", query));
  const answer = async (c: Context<E>): Promise<Response> => {
    const call = await prepare(c);
    if (cache === "public") (c as unknown as AppContext).get("exchange").isPublic = true;
    const said = {
      params: paramsOf && (await paramsOf(c)),
      query: queryOf && (await queryOf(c)),
      json: json && (await readSmallJson(c.req.raw, json)),
    };
    return handle(call, said as Said<P, Q, B>);
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
