// What the resources of the management interface have in common: routes to list, make, read, change and delete them.
import * as z from "zod";
import type { ErrorCode } from "../../errors.ts";
import { orThrow } from "../answers.ts";
import type { PlatformRoute } from "../platform-route.ts";
import type { Refusal } from "../queue/views.ts";
import * as fields from "./fields.ts";
import { type ManagementCall, managementRoute } from "./management-route.ts";

type Errors = readonly ErrorCode[];
type Answer<T> = Promise<T | Refusal>;

export interface Resource<T extends object, L extends z.ZodType, C extends z.ZodType, G extends z.ZodType> {
  /** As the contract's operations name it: `GetTemplate`, `ListTemplates`. */
  readonly name: string;
  readonly path: string;
  /** The path's parameter: `templateId`. */
  readonly id: string;
  readonly answer: z.ZodType;
  readonly list: {
    readonly summary: string;
    readonly query?: L;
    readonly answer: (call: ManagementCall, query: z.output<L>) => Promise<Response>;
  };
  readonly create: {
    readonly summary: string;
    readonly body: C;
    readonly status?: 201;
    readonly errors?: Errors;
    readonly make: (call: ManagementCall, body: z.output<C>) => Answer<T>;
  };
  readonly get: {
    readonly summary: string;
    readonly query?: G;
    readonly find: (call: ManagementCall, id: string, query: z.output<G>) => Answer<T>;
  };
  readonly remove: {
    readonly summary: string;
    readonly errors?: Errors;
    readonly act: (call: ManagementCall, id: string) => Answer<object>;
  };
}

export function resourceRoutes<T extends object, L extends z.ZodType, C extends z.ZodType, G extends z.ZodType>({
  name,
  path,
  id,
  answer,
  list,
  create,
  get,
  remove,
}: Resource<T, L, C, G>): PlatformRoute[] {
  const one = { path: `${path}/:${id}`, params: byId(id) };
  const { answer: answerAll, ...listing } = list;
  const { make, ...making } = create;
  const { find, ...getting } = get;
  const { act, ...removing } = remove;
  return [
    managementRoute(
      { ...listing, id: `List${name}s`, method: "get", path, answer: z.array(answer) },
      (call, { query }) => answerAll(call, query as z.output<L>),
    ),
    managementRoute({ ...making, id: `Create${name}`, method: "post", path, answer }, async (call, { body }) =>
      Response.json(orThrow(await make(call, body as z.output<C>)), { status: create.status ?? 200 }),
    ),
    managementRoute(
      { ...getting, ...one, id: `Get${name}`, method: "get", answer, errors: ["NOT_FOUND"] },
      async (call, { params, query }) =>
        Response.json(orThrow(await find(call, params[id] ?? "", query as z.output<G>))),
    ),
    managementRoute(
      { ...removing, ...one, id: `Delete${name}`, method: "delete", status: 204, errors: errorsOf(remove) },
      async (call, { params }) => {
        orThrow(await act(call, params[id] ?? ""));
        return new Response(null, { status: 204 });
      },
    ),
  ];
}

interface Change<B extends z.ZodType> {
  readonly summary: string;
  readonly body: B;
  readonly errors?: Errors;
  readonly act: (call: ManagementCall, id: string, change: z.output<B>) => Answer<object>;
}

/** By PATCH, and by POST to its synonym. */
export function changeRoutes<B extends z.ZodType>(
  {
    name,
    path,
    id,
    answer,
  }: Pick<Resource<object, z.ZodType, z.ZodType, z.ZodType>, "name" | "path" | "id" | "answer">,
  change: Change<B>,
): PlatformRoute[] {
  const { body, summary } = change;
  const changing = { params: byId(id), body, answer, errors: errorsOf(change) };
  const ways = [
    { id: `Update${name}`, method: "patch", path: `${path}/:${id}`, summary },
    { id: `Update${name}ByPost`, method: "post", path: `${path}/:${id}/update`, summary: "The same as PATCH" },
  ] as const;
  return ways.map((way) =>
    managementRoute({ ...changing, ...way }, async (call, { params, body: asked }) =>
      Response.json(orThrow(await change.act(call, params[id] ?? "", asked as z.output<B>))),
    ),
  );
}

function byId(id: string) {
  return z.object({ [id]: fields.id });
}

function errorsOf({ errors = [] }: { readonly errors?: Errors }): Errors {
  return ["NOT_FOUND", ...errors];
}
