// Bodies that are small by nature, read whole and never past their bound.
import * as z from "zod";
import { describeFaults, Problem } from "../errors.ts";
import { concat } from "../json/concat.ts";
import { readWhole } from "./body.ts";
import { bodyProblem, refuseEncoded } from "./body-problem.ts";

const smallBytes = 64 * 1024;

/** Undefined when there is more than the bound; the rest is not read. */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body ?? []) {
    length += part.byteLength;
    if (length > maxBytes) return undefined;
    parts.push(part);
  }
  return concat(parts, length);
}

/** The value that the bytes spell; undefined when they are no JSON in UTF-8. No JSON text spells undefined. */
export function tryParseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** A request's JSON body, parsed by its schema. No body at all reads as `{}`. */
export async function readSmallJson<T extends z.ZodType>(request: Request, schema: T): Promise<z.output<T>> {
  refuseEncoded(request);
  const read = await readWhole(request, smallBytes);
  if ("fault" in read) throw bodyProblem(read.fault, smallBytes);
  const { bytes } = read;
  const value = bytes.byteLength === 0 ? {} : tryParseJson(bytes);
  if (value === undefined) throw new Problem("INVALID_JSON", "The body is not JSON in UTF-8.");
  const checked = z.safeParse(schema, value);
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  return checked.data;
}
