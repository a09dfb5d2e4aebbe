// What is kept of a finished picture, film or sound: where it lies and until when. Pure; the rest of the room builds on it.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import { isMediaField, mediaFields } from "../../contract/media-fields.ts";

/** As far as a date reaches. */
const moment = z.int().min(0).max(8.64e15);

export const mediaSchema = z.object({
  url: z.string(),
  field: z.enum(mediaFields),
  model: z.string(),
  /** In USD, as the answer said it. */
  cost: z.number().nullable(),
  /** In bytes, where the answer said it. */
  size: z.number().nullable(),
  completedAt: moment,
  expiresAt: moment,
  /** Who may delete it. */
  owner: z.string(),
  /** The output's further members, so that a job answered from here reads as the first one did. */
  others: z.record(z.string(), z.unknown()).optional(),
});
export type Media = z.infer<typeof mediaSchema>;

/** Longer than any presigned URL. */
const maxUrlLength = 8192;
/** Further members of an output that are kept for reuse, in characters of JSON. */
const maxOthersLength = 4096;

interface Finished {
  readonly owner: string;
  readonly model: string;
  readonly costMicroUsd: number | null;
  readonly completedAt: number;
  /** Of the output only this much is known: no other request can be answered with it. */
  readonly partly?: boolean | undefined;
}

/** An output's media; nothing for base64 and for what is no URL. */
export function mediaIn(output: unknown, { owner, model, costMicroUsd, completedAt, partly }: Finished): Media[] {
  if (typeof output !== "object" || output === null) return [];
  const members = output as Record<string, unknown>;
  const others = partly ? undefined : othersOf(members);
  return mediaFields.flatMap((field) => {
    const url = members[field];
    if (!isLink(url)) return [];
    const size = typeof members["size"] === "number" ? members["size"] : null;
    const cost = costMicroUsd === null ? null : costMicroUsd / 1e6;
    const expiresAt = expiryOf(url, completedAt);
    const media = { url, field, model, cost, size, completedAt, expiresAt, owner };
    return [others === undefined ? media : { ...media, others }];
  });
}

export function isLink(value: unknown): value is string {
  if (typeof value !== "string" || value.length > maxUrlLength) return false;
  const url = URL.parse(value);
  return url !== null && url.protocol !== "data:";
}

/** Undefined where there is too much of it to keep: then the answer is not reused. */
function othersOf(members: Record<string, unknown>): Record<string, unknown> | undefined {
  const others = Object.fromEntries(Object.entries(members).filter(([name]) => !isMediaField(name)));
  return JSON.stringify(others).length > maxOthersLength ? undefined : others;
}

/** Seven days after completion, or when the URL itself says that it ends, whichever is earlier. */
export function expiryOf(url: string, completedAt: number): number {
  const lifetime = completedAt + limits.mediaLifetimeMs;
  return Math.max(0, Math.min(lifetime, signedExpiry(url) ?? Number.POSITIVE_INFINITY));
}

const signedAt = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

/** The moment that a presigned URL names: S3's and Google's date and lifetime, Azure's `se`, or `Expires` in seconds. */
function signedExpiry(url: string): number | undefined {
  const query = URL.parse(url)?.searchParams;
  for (const prefix of ["X-Amz", "X-Goog"]) {
    const [, year, month, day, hour, minute, second] = signedAt.exec(query?.get(`${prefix}-Date`) ?? "") ?? [];
    const signed = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    const lifetime = Number(query?.get(`${prefix}-Expires`));
    if (Number.isNaN(signed) || !(lifetime > 0)) continue;
    return signed + Math.floor(lifetime * 1000);
  }
  const named = Date.parse(query?.get("se") ?? "");
  if (Number.isSafeInteger(named)) return named;
  const plain = Number(query?.get("Expires"));
  return Number.isSafeInteger(plain) && plain > 1e9 && plain < 1e11 ? plain * 1000 : undefined;
}
