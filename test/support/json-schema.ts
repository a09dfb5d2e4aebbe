// Checks a value against a JSON Schema, as OpenAPI 3.0 and 3.1 write them: as much of it as our documents use.

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly format?: string;
}
export type Schemas = Readonly<Record<string, Schema>>;

const formats: Record<string, (text: string) => boolean> = {
  "date-time": (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text)),
  ipv4: (text) => /^\d{1,3}(\.\d{1,3}){3}$/.test(text),
};

/** Each fault with its path; none where the value is as the schema has it. */
export function schemaFaults(value: unknown, schema: Schema, schemas: Schemas, at = "$"): string[] {
  if (schema.$ref !== undefined) {
    const named = schemas[schema.$ref.split("/").at(-1) ?? ""];
    return named ? schemaFaults(value, named, schemas, at) : [`${at}: no schema ${schema.$ref}`];
  }
  if (value === null && schema.nullable) return [];
  if (schema.anyOf) {
    const tried = schema.anyOf.map((one) => schemaFaults(value, one, schemas, at));
    return tried.some((faults) => faults.length === 0) ? [] : tried.flat();
  }
  if ("const" in schema && value !== schema.const) return [`${at}: is not ${schema.const}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${at}: ${JSON.stringify(value)} is none of the values`];
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) return [`${at}: is no ${types.join(" or ")}`];
  if (typeof value === "string") return textFaults(value, schema, at);
  if (typeof value === "number") return numberFaults(value, schema, at);
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.flatMap((item, index) => schemaFaults(item, items, schemas, `${at}[${index}]`)) : [];
  }
  return typeof value === "object" && value !== null ? objectFaults(value, schema, schemas, at) : [];
}

function objectFaults(value: object, schema: Schema, schemas: Schemas, at: string): string[] {
  const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}.${name}: is missing`);
  const inner = Object.entries(value).flatMap(([name, member]) => {
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    if (known === false) return [`${at}.${name}: is unknown`];
    return typeof known === "object" ? schemaFaults(member, known, schemas, `${at}.${name}`) : [];
  });
  return [...missing, ...inner];
}

function textFaults(value: string, { maxLength, format }: Schema, at: string): string[] {
  const long = maxLength !== undefined && value.length > maxLength ? [`${at}: is too long`] : [];
  const wrong = format !== undefined && formats[format]?.(value) === false ? [`${at}: is no ${format}`] : [];
  return [...long, ...wrong];
}

function numberFaults(value: number, { minimum, maximum }: Schema, at: string): string[] {
  const outside = (minimum !== undefined && value < minimum) || (maximum !== undefined && value > maximum);
  return outside ? [`${at}: ${value} is out of bounds`] : [];
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "null") return value === null;
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}
