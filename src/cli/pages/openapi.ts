// What the reference reads of the OpenAPI document.
import { slugOf } from "./markdown.ts";

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly format?: string;
  readonly default?: unknown;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

export interface Operation {
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Route {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export interface Group {
  readonly id: string;
  readonly text: string;
  readonly routes: readonly Route[];
}

const titles: readonly (readonly [RegExp, string])[] = [
  [/^\/v2\//, "Jobs"],
  [/^\/models/, "Models"],
  [/^\/(images|uploads)/, "Media"],
  [/^\/(sessions|tokens)/, "Tokens"],
  [/^\/usage/, "Usage"],
  [/^\/openai/, "OpenAI"],
  [/^\/lb/, "Load balancing"],
  [/^\/admin/, "For the operator"],
  [/^\/v1\//, "Management"],
  [/^\/platform\/v2/, "The embedded platform: jobs and workers"],
  [/^\/platform/, "The embedded platform: management"],
  [/^/, "For tools"],
];

/** The routes by what they are for, in the order of the titles. */
export function tagsOf({ paths }: OpenApi): Group[] {
  const routes = Object.entries(paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, operation]) => ({
      id: slugOf(`${method}${path.replaceAll("/", "-")}`),
      method,
      path,
      operation,
    })),
  );
  const titleOf = ({ path }: Route) => titles.find(([pattern]) => pattern.test(path))?.[1];
  const groups = titles.map(([, text]) => ({
    id: slugOf(text),
    text,
    routes: routes.filter((route) => titleOf(route) === text),
  }));
  return groups.filter((group) => group.routes.length > 0);
}

export function schemaOf(given: Content | undefined): Schema | undefined {
  return Object.values(given?.content ?? {})[0]?.schema;
}

const deepest = 4;

/** The shape as people write it; a name that was met on the way is not opened again. */
export function shapeOf(schema: Schema, openApi: OpenApi, indent = "", met: readonly string[] = []): string {
  const { $ref, type, enum: options, const: only, anyOf, oneOf, items, properties, required = [], format } = schema;
  if ($ref !== undefined) {
    const name = $ref.split("/").at(-1) ?? "";
    const named = openApi.components.schemas[name];
    return !named || met.includes(name) || met.length > deepest
      ? name
      : shapeOf(named, openApi, indent, [...met, name]);
  }
  if (only !== undefined) return JSON.stringify(only);
  if (options) return options.map((option) => JSON.stringify(option)).join(" | ");
  const either = anyOf ?? oneOf;
  if (either) return either.map((one) => shapeOf(one, openApi, indent, met)).join(" | ");
  if (items) return `[${shapeOf(items, openApi, indent, met)}]`;
  if (properties && Object.keys(properties).length > 0) {
    const inner = `${indent}  `;
    const members = Object.entries(properties).map(([name, member]) => {
      const said = member.description ? `  // ${member.description}` : "";
      return `${inner}${name}${required.includes(name) ? "" : "?"}: ${shapeOf(member, openApi, inner, met)}${said}`;
    });
    return `{\n${members.join("\n")}\n${indent}}`;
  }
  return format ?? [type ?? "any"].flat().join(" | ");
}
