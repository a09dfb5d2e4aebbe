// One statement a route: its method, path, schemas, errors, guards and handler. Hono and OpenAPI are both made of it.
import { zValidator } from "@hono/zod-validator";
import type { Context, Hono, Env as HonoEnv, MiddlewareHandler } from "hono";
import type * as z from "zod";
import type { Operation } from "../contract/operation.ts";
import type { ErrorCode } from "../errors.ts";
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

export function route<
  E extends HonoEnv,
  P extends Schema = undefined,
  Q extends Schema = undefined,
  B extends Schema = undefined,
>(
  statement: Statement<P, Q, B>,
  guards: readonly MiddlewareHandler<E>[],
  handle: (c: Context<E>, said: Said<P, Q, B>) => Response | Promise<Response>,
): Route<E> {
  const { path, params, query, json, cache = "no-store" } = statement;
  const checks: MiddlewareHandler[] = [];
  if (params) checks.push(zValidator("param", params, orRefuse));
  if (query) checks.push(zValidator("query", query, orRefuse));
  const answer = async (c: Context<E>): Promise<Response> => {
    if (cache === "public") (c as unknown as AppContext).get("exchange").isPublic = true;
    const checked = (place: string) => c.req.valid(place as never) as unknown;
    const said = {
      params: params && checked("param"),
      query: query && checked("query"),
      json: json && (await readSmallJson(c.req.raw, json)),
    };
    return handle(c, said as Said<P, Q, B>);
  };
  const method = statement.method.toUpperCase();
  return {
    operation: operationOf(statement),
    mount: (app) => app.on([method], [path], ...guards, ...(checks as MiddlewareHandler<E>[]), answer),
  };
}

/** OpenAPI writes `/models/{model}`. What every checked request may be refused with need not be stated. */
function operationOf<P extends Schema, Q extends Schema, B extends Schema>({
  params,
  json,
  ...statement
}: Statement<P, Q, B>): Operation {
  const { path, query, body, errors = [], ...others } = statement;
  const implied: ErrorCode[] = [];
  if (params || query || json) implied.push("INVALID_REQUEST");
  if (json) implied.push(...bodyErrors);
  const taken = json ?? body;
  return {
    ...others,
    path: path.replaceAll(/:(\w+)(\{[^}]*\})?/g, "{$1}"),
    ...(query && { query }),
    ...(taken && { body: taken }),
    errors: [...new Set([...errors, ...implied])],
  };
}
