// Fields that several resources share, as bodies and as queries carry them. Unknown fields are tolerated.
import * as z from "zod";
import { cudaVersions, dataCenterIds } from "./vocabulary.ts";

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,190}$/;
export const id = z.string().regex(idPattern, "expected an id: letters, digits, - and _");

/** Clients clear a reference by an empty text or null. */
export const reference = z
  .union([id, z.literal(""), z.null()], { error: "expected an id" })
  .transform((value) => value || null);
/** What a reference becomes: cleared by null, kept where nothing is said. */
export function refer(kept: string | undefined, given: string | null | undefined): string | undefined {
  return given === undefined ? kept : (given ?? undefined);
}
export const name = z.string().trim().min(1).max(191);
export const imageName = z.string().trim().min(1).max(1024);
export const diskInGb = z.int().min(0).max(100_000);
export const count = z.int().min(1).max(1000);
export const mountPath = z.string().max(1024).startsWith("/", "expected an absolute path");
/** What one record may say of a thing, as JSON: lists carry it once for each record. */
const maxText = 65_536;
const isShort = (value: unknown) => JSON.stringify(value).length <= maxText;
const inAll = `expected at most ${maxText} characters in all`;
export const command = z.array(z.string().max(32_768)).max(256).refine(isShort, inAll);
export const environment = z.record(z.string().min(1).max(1024), z.string().max(maxText)).refine(isShort, inAll);
const once = <T>(values: readonly T[]) => [...new Set(values)];
/** Of words that are known, in the order of preference, each once: so it is never longer than the vocabulary. */
export function choice<const T extends readonly string[]>(words: T) {
  return z.array(z.enum(words)).min(1).overwrite(once);
}
export const dataCenters = choice(dataCenterIds);
export const cudas = z.array(z.enum(cudaVersions)).overwrite(once);
export const cuda = z.enum(cudaVersions);

const portPattern = /^(\d{1,5})\/(http|tcp)$/;
export const ports = z
  .array(
    z.string().refine((port) => {
      const number = Number(portPattern.exec(port)?.[1] ?? 0);
      return number >= 1 && number <= 65_535;
    }, "expected a port number with its protocol, such as 8888/http or 22/tcp"),
  )
  .max(1000);
export const defaultPorts = ["8888/http", "22/tcp"];

export const flag = z
  .enum(["true", "false"])
  .default("false")
  .transform((value) => value === "true");

/** Once, several times, or with commas between: at most as many words as there are, since a statement binds few values. */
export function listOf<T extends z.ZodType<string, string>>(item: T, words: readonly string[]) {
  return z
    .union([z.string(), z.array(z.string())])
    .transform((value) => (typeof value === "string" ? value.split(",") : value).map((part) => part.trim()))
    .pipe(z.array(item).min(1).overwrite(once).max(words.length))
    .optional();
}

/** One reading of a change: what is not named stays. */
export function changed<T extends object>(record: T, changes: { readonly [K in keyof T]?: T[K] | undefined }): T {
  return { ...record, ...Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) };
}
