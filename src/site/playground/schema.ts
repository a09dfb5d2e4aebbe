// The fields of a model's form, made of the JSON Schema of its input; and the input, made of what was filled in.
import type { MediaKind } from "../media.tsx";

export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly (string | number)[];
  readonly examples?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly "x-media"?: MediaKind;
}

export interface Field {
  readonly name: string;
  readonly type: "words" | "text" | "number" | "switch" | "choice" | "media" | "json";
  readonly schema: Schema;
  readonly isRequired: boolean;
  /** What the model takes where nothing is said. */
  readonly usual: unknown;
  readonly rank: "first" | "shown" | "more";
}

/** What the control of a field is given to show. */
export interface FieldProps {
  readonly field: Field;
  readonly label: string;
  readonly value: unknown;
  readonly change: (value: unknown) => void;
  readonly says: string | undefined;
  readonly isWrong: boolean;
}

/** A file of an input: its link, and what people call it. */
export type Attached = Readonly<{ link: string; name: string }>;

export type Values = Readonly<Record<string, unknown>>;

const first = ["prompt", "messages", "image", "images", "video", "audio"];
const shown =
  /^(size|aspect_ratio|width|height|resolution|duration|voice|voice_id|emotion|style|max_tokens|last_image|model|seed)$/;
const words = /^(prompt|negative_prompt|messages)$/;

export function fieldsOf({ properties = {}, required = [] }: Schema): Field[] {
  const fields = Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, required.includes(name)));
  const placeOf = ({ name, rank }: Field) => (rank === "first" ? first.indexOf(name) : first.length);
  return fields.sort((a, b) => placeOf(a) - placeOf(b));
}

function fieldOf(name: string, schema: Schema, isRequired: boolean): Field {
  return {
    name,
    type: typeOf(name, schema),
    schema,
    isRequired,
    usual: schema.default ?? (isRequired ? (schema.enum?.[0] ?? schema.minimum) : undefined),
    rank: first.includes(name) ? "first" : isRequired || shown.test(name) ? "shown" : "more",
  };
}

function typeOf(name: string, { type, enum: options, "x-media": media }: Schema): Field["type"] {
  if (media) return "media";
  if (options) return "choice";
  if (words.test(name)) return "words";
  if (type === "boolean") return "switch";
  if (type === "integer" || type === "number") return "number";
  return type === "string" ? "text" : "json";
}

/** What is sent: nothing for what was left empty, since the model has its own way then. */
export function inputOf(fields: readonly Field[], values: Values): Record<string, unknown> {
  const members = fields.map((field) => [field.name, sentValue(field, values[field.name])]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function sentValue({ name, type, usual, isRequired, schema }: Field, given: unknown): unknown {
  if (type === "media") {
    const links = ((given ?? []) as readonly Attached[]).map(({ link }) => link).slice(0, schema.maxItems ?? 1);
    return schema.type === "array" && links.length > 0 ? links : links[0];
  }
  if (type === "choice") {
    const option = schema.enum?.find((one) => `${one}` === `${given}`) ?? usual;
    return option === usual && !isRequired ? undefined : option;
  }
  if (given === undefined || given === "") return isRequired && type !== "words" ? usual : undefined;
  if (type === "switch") return given === usual ? undefined : given;
  if (type === "number") return Number(given);
  if (type === "json") return parsed(`${given}`);
  return name === "messages" ? [{ role: "user", content: given }] : given;
}

/** What is no JSON is sent as it is: the gateway says what is wrong with it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
