// `npm run types`: writes what each model takes and makes as TypeScript, from the schemas that validate, for src/client.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeModel } from "../models/describe.ts";
import { type Kind, models } from "../models/index.ts";
import { root } from "./wrangler.ts";

/** What is read of JSON Schema: as much as the catalog uses. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly "x-media"?: unknown;
}

export const clientTypesFile = join(root, "src/client/models.ts");

const outputs: Readonly<Record<Kind, string>> = {
  image: "ImageOutput",
  "image-edit": "ImageOutput",
  video: "VideoOutput",
  speech: "SpeechOutput",
  text: "TextOutput",
};

export function clientTypes(): string {
  const entries = models.map((model) => {
    const { title, price, input } = describeModel(model);
    const shape = objectType(input as Schema, "    ");
    return `  /** ${title}: ${price}. */
  ${JSON.stringify(model.id)}: {
    readonly input: ${shape};
    readonly output: ${outputs[model.kind]};
  };`;
  });
  return `// Made from the catalog's schemas by \`npm run types\`: edit src/models instead.
import type { ${[...new Set(Object.values(outputs)), "Media"].sort().join(", ")} } from "./outputs.ts";

export interface Models {
${entries.join("\n")}
}
`;
}

function objectType({ properties = {}, required = [] }: Schema, indent: string): string {
  const members = Object.entries(properties).map(([name, schema]) => {
    const isOptional = !required.includes(name);
    return `${commentOn(schema, `${indent}  `)}${indent}  readonly ${name}${isOptional ? "?" : ""}: ${typeOf(schema, `${indent}  `)};`;
  });
  return members.length === 0 ? "Readonly<Record<string, unknown>>" : `{\n${members.join("\n")}\n${indent}}`;
}

function typeOf(schema: Schema, indent: string): string {
  if (isMedia(schema) && schema.type !== "array") return "Media";
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(" | ");
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return listOf(schema.items ? typeOf(schema.items, indent) : "unknown");
    case "object":
      return objectType(schema, indent);
    default:
      return "unknown";
  }
}

const listOf = (item: string) => (item.includes(" | ") ? `readonly (${item})[]` : `readonly ${item}[]`);

/** A list of files says so too, beside each of its members. */
function isMedia(schema: Schema): boolean {
  return schema["x-media"] !== undefined && schema.type === "string";
}

function commentOn(schema: Schema, indent: string): string {
  const { description, minimum, maximum, default: byDefault } = schema;
  const isBounded = minimum !== undefined && maximum !== undefined && Math.abs(maximum) < Number.MAX_SAFE_INTEGER;
  const said = [
    isMedia(schema) ? undefined : description,
    isBounded ? `From ${minimum} to ${maximum}.` : undefined,
    byDefault === undefined ? undefined : `${JSON.stringify(byDefault)} unless you say otherwise.`,
  ].filter((sentence) => sentence !== undefined);
  return said.length === 0 ? "" : `${indent}/** ${said.join(" ").replaceAll("*/", "* /")} */\n`;
}

if (import.meta.main) writeFileSync(clientTypesFile, clientTypes());
