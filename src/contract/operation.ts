// How a route says what it takes and answers, and the OpenAPI document that comes of it.
import * as z from "zod";
import { type ErrorCode, errors } from "../errors.ts";

export interface Operation {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** As OpenAPI writes it: `/models/{model}`. */
  readonly path: string;
  /** The contract's own name of the operation. */
  readonly id?: string;
  readonly summary: string;
  readonly access: "public" | "user" | "app" | "operator" | "platform" | "upstream";
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  /** What a 200 carries; another status where `status` names it, another type where `contentType` does. */
  readonly answer?: z.ZodType;
  readonly status?: number;
  readonly contentType?: string;
  /** Further statuses that carry the same; 204 carries nothing. */
  readonly otherStatuses?: readonly number[];
  /** The same status may also carry server-sent events. */
  readonly streams?: boolean;
  /** Whose shape errors have; ours unless this says otherwise. */
  readonly errorShape?: "openai";
  readonly errors?: readonly ErrorCode[];
  /** Whether caches may keep what it answers with. Nothing of a route that does not say so is kept anywhere. */
  readonly cache?: "no-store" | "public";
}

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    error: z.string(),
    code: z.enum(Object.keys(errors) as [ErrorCode, ...ErrorCode[]]),
    requestId: z.string(),
    message: z.string().optional().describe("The detail again, as management clients read it."),
  })
  .meta({ id: "Problem" });

const openAiErrorSchema = z
  .object({
    error: z.looseObject({
      message: z.string(),
      type: z.string().nullish(),
      code: z.unknown(),
      param: z.string().nullish(),
    }),
  })
  .meta({ id: "OpenAiError" });

type WriteSchema = (schema: z.ZodType, io: "input" | "output") => object;

const always: readonly ErrorCode[] = ["INTERNAL", "MISCONFIGURED"];
const jsonOf = (schema: object) => ({ "application/json": { schema } });

/** Schemas that carry an id become components; the others stay where they are used. */
function schemaWriter() {
  const components: Record<string, object> = {};
  const write: WriteSchema = (schema, io) => {
    const id = schema.meta()?.id;
    const { $schema: _, id: __, $defs = {}, ...body } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
    for (const [name, { id: _, ...definition }] of Object.entries($defs)) components[name] ??= definition;
    if (id === undefined) return body;
    components[id] ??= body;
    return { $ref: `#/components/schemas/${id}` };
  };
  return { components, write };
}

/** zod points at `#/$defs`, OpenAPI keeps its schemas under components. */
function rewriteRefs<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', '"#/components/schemas/')) as T;
}

/** `base` is where the paths begin, for a document that names them without it. */
export function openApi(operations: readonly Operation[], info: { title: string; version: string }, base?: string) {
  const { components, write } = schemaWriter();
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of operations) {
    paths[operation.path] ??= {};
    Object.assign(paths[operation.path] as object, { [operation.method]: describeOperation(operation, write) });
  }
  write(problemSchema, "output");
  if (operations.some(({ errorShape }) => errorShape === "openai")) write(openAiErrorSchema, "output");
  return rewriteRefs({
    openapi: "3.1.0",
    info,
    ...(base !== undefined && { servers: [{ url: base }] }),
    paths,
    components: {
      schemas: components,
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  });
}

function describeOperation(operation: Operation, write: WriteSchema) {
  const { body, answer, contentType = "application/json", streams, otherStatuses = [] } = operation;
  const pathParameters = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const success = {
    description: "",
    ...(answer && {
      content: {
        [contentType]: { schema: write(answer, "output") },
        ...(streams && { "text/event-stream": { schema: { type: "string" } } }),
      },
    }),
  };
  const error = operation.errorShape === "openai" ? "OpenAiError" : "Problem";
  const refusals = [...(operation.errors ?? []), ...always].map((code) => [errors[code].status, code] as const);
  return {
    ...(operation.id !== undefined && { operationId: operation.id }),
    summary: operation.summary,
    security: operation.access === "public" ? [] : [{ bearer: [] }],
    parameters: [...pathParameters, ...queryParameters(operation.query, write)],
    ...(body && { requestBody: { required: true, content: jsonOf(write(body, "input")) } }),
    responses: {
      [operation.status ?? 200]: success,
      ...Object.fromEntries(otherStatuses.map((status) => [status, status === 204 ? { description: "" } : success])),
      ...Object.fromEntries(
        [...new Set(refusals.map(([status]) => status))].map((status) => [
          status,
          {
            description: refusals.flatMap(([of, code]) => (of === status ? [code] : [])).join(", "),
            content: jsonOf({ $ref: `#/components/schemas/${error}` }),
          },
        ]),
      ),
    },
  };
}

function queryParameters(query: z.ZodType | undefined, write: WriteSchema) {
  if (!query) return [];
  const { properties = {}, required = [] } = write(query, "input") as {
    properties?: Record<string, object>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}
