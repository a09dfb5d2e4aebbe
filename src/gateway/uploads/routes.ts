// The caller's own files: announced and reserved, put by a signed URL, served by an unguessable key, listed and deleted.
import * as z from "zod";
import { ownOrigin } from "../../config.ts";
import { answersWithinMs, type Remote, remote, repeated } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import type { Call } from "../call.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { authenticate } from "../identity/authenticate.ts";
import { floodShield } from "../identity/flood-shield.ts";
import { callerErrors, permitted } from "../identity/scope.ts";
import { hasCacheInFront, purge } from "../media/public-file.ts";
import { maxMediaBytes } from "../media/source.ts";
import { claimsOf } from "../quota/claims.ts";
import { orUnavailable } from "../quota/meter-stub.ts";
import type { AdmitAnswer } from "../quota/metering.ts";
import type { KeptUpload, UploadCalls } from "../quota/upload-calls.ts";
import { uploadFile } from "../quota/upload-file.ts";
import { bucketAway, bucketOf } from "./bucket.ts";
import { readType, uploadTypes } from "./file-types.ts";
import { putFile } from "./put.ts";
import { putTicketsOf } from "./put-ticket.ts";
import { serveFile, unknownUpload } from "./serve-file.ts";
import { type UploadKey, uploadKeysOf, uploadLink } from "./upload-key.ts";

const ttlSeconds = { default: 24 * 60 * 60, max: 7 * 24 * 60 * 60 } as const;
/** In which a PUT may begin. */
const putMs = 10 * 60_000;

const announcedSchema = z
  .strictObject({
    type: z
      .string()
      .max(256)
      .describe(`One of ${uploadTypes.join(", ")}.`),
    bytes: z.int().min(1).describe(`Exactly. At most ${maxMediaBytes}.`),
    ttlSeconds: z.int().min(1).max(ttlSeconds.max).default(ttlSeconds.default).describe("How long the file is kept."),
  })
  .meta({ id: "UploadRequest" });
const cursorPattern = /^(\d{1,15})-([0-9a-z.-]{1,128})$/;
const listQuery = z.object({
  cursor: z.string().regex(cursorPattern, "expected a cursor of this list").optional(),
  limit: z.coerce.number().int().min(1).max(100).default(50),
});

const uploadSchema = z
  .object({ id: z.string(), url: z.url(), type: z.string(), bytes: z.int(), expiresAt: z.iso.datetime() })
  .meta({ id: "Upload" });
const announcedAnswer = uploadSchema
  .extend({
    put: z
      .object({ url: z.url(), headers: z.record(z.string(), z.string()) })
      .describe("Where the file is to be put, with which headers: once, within ten minutes."),
  })
  .meta({ id: "AnnouncedUpload" });
const listedUpload = uploadSchema.extend({ createdAt: z.iso.datetime() }).meta({ id: "ListedUpload" });

const asOwner = [authenticate, floodShield, permitted("uploads")];
const asked = [...callerErrors, "RATE_LIMITED", "METER_UNAVAILABLE", "NOT_IMPLEMENTED"] as const;
const byKey = ["NOT_FOUND", "GONE", "UNAVAILABLE", "NOT_IMPLEMENTED"] as const;

export const uploadRoutes = [
  gatewayRoute(
    {
      method: "post",
      path: "/uploads",
      summary: "Announce a file, and learn where to put it",
      access: "user",
      json: announcedSchema,
      answer: announcedAnswer,
      errors: [...asked, "UNSUPPORTED_TYPE", "QUOTA_EXCEEDED"],
    },
    asOwner,
    (call, { json }) => announce(call, json),
  ),
  gatewayRoute(
    {
      method: "get",
      path: "/uploads",
      summary: "Your uploads, newest first",
      access: "user",
      query: listQuery,
      answer: z.object({ uploads: z.array(listedUpload), cursor: z.string().nullable() }),
      errors: asked,
    },
    asOwner,
    (call, { query: { cursor, limit } }) => list(call, cursor, limit),
  ),
  gatewayRoute(
    {
      method: "get",
      path: "/uploads/:key",
      summary: "An uploaded file",
      access: "public",
      cache: "public",
      contentType: "application/octet-stream",
      answer: z.string().meta({ format: "binary" }),
      errors: [...byKey, "RANGE_NOT_SATISFIABLE"],
    },
    [],
    async (call) => {
      const bucket = bucketOf(call);
      const key = readKey(call);
      const { request, config, exchange } = call;
      const isCachedInFront = hasCacheInFront(call.ctx);
      return serveFile({ bucket, key, request, config, isCachedInFront, now: exchange.startedAt });
    },
  ),
  gatewayRoute(
    {
      method: "put",
      path: "/uploads/:key",
      summary: "Put the file, by the URL that it was announced under",
      access: "public",
      status: 201,
      answer: uploadSchema,
      errors: [
        ...byKey,
        "FORBIDDEN",
        "ALREADY_UPLOADED",
        "PAYLOAD_TOO_LARGE",
        "UNSUPPORTED_TYPE",
        "INVALID_REQUEST",
        "REQUEST_TIMEOUT",
        "METER_UNAVAILABLE",
      ],
    },
    [],
    async (call) => {
      const key = readKey(call);
      const { bytes } = await putFile(call, key);
      const { text, type, expiresAt } = key;
      return Response.json(describe(call, { key: text, type, bytes, expiresAt }), { status: 201 });
    },
  ),
  gatewayRoute(
    {
      method: "delete",
      path: "/uploads/:key",
      summary: "Delete an upload of yours",
      access: "user",
      status: 204,
      errors: [...asked, "NOT_FOUND", "GONE", "UNAVAILABLE"],
    },
    asOwner,
    remove,
  ),
];

/** Made-up keys end here, and those that are over, before any storage is asked. */
function readKey(call: Call): UploadKey {
  const key = uploadKeysOf(call.config).read(call.params["key"] ?? "");
  if (!key) throw unknownUpload;
  if (key.expiresAt > call.exchange.startedAt) return key;
  throw new Problem("GONE", `This link expired at ${new Date(key.expiresAt).toISOString()}.`);
}

async function announce(call: Call, announced: z.output<typeof announcedSchema>): Promise<Response> {
  bucketOf(call);
  const { type: said, bytes, ttlSeconds: ttl } = announced;
  const type = readType(said);
  if (type === undefined) throw new Problem("UNSUPPORTED_TYPE", `type: expected one of ${uploadTypes.join(", ")}`);
  if (bytes > maxMediaBytes) throw new Problem("PAYLOAD_TOO_LARGE", `bytes: at most ${maxMediaBytes} are taken`);
  const { principal, config, exchange } = call;
  const now = exchange.startedAt;
  const [expiresAt, putUntil] = [now + 1000 * ttl, now + Math.min(putMs, 1000 * ttl)];
  const { owner, payer, ownerHash, issuedAt, tokenId } = principal;
  const key = uploadKeysOf(config).mint(type, expiresAt);
  const asked = { ...claimsOf(call), key, owner, bearer: { issuedAt, tokenId }, type, bytes, putUntil, expiresAt };
  const quota = admittedOr(await orUnavailable(repeated(() => meterOf(call).reserveUpload(asked))));
  const meter = call.env.USER_METER.idFromName(payer).toString();
  const query = putTicketsOf(config).write({ key, type, bytes, until: putUntil, meter, ownerHash });
  const put = { url: `${linkOf(call, key)}?${query}`, headers: { "Content-Type": type } };
  return Response.json({ ...describe(call, { key, type, bytes, expiresAt }), put }, { headers: quota });
}

/** What the caller may know of the rules, as headers. */
function admittedOr(answer: AdmitAnswer): Record<string, string> {
  if ("replay" in answer) throw new Error("no upload replays another");
  const { quota } = answer;
  const fields = quota ? { "RateLimit-Policy": quota.policy, RateLimit: quota.limit } : {};
  const headers = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
  if (answer.admitted) return headers;
  const { retryAfterSeconds } = answer;
  if (retryAfterSeconds !== undefined) headers["Retry-After"] = String(retryAfterSeconds);
  throw new Problem(answer.code, answer.detail, headers);
}

async function list(call: Call, cursor: string | undefined, limit: number): Promise<Response> {
  bucketOf(call);
  const [, createdAt, after] = cursorPattern.exec(cursor ?? "") ?? [];
  const before = after === undefined ? undefined : { createdAt: Number(createdAt), key: after };
  const rows = await orUnavailable(meterOf(call).uploads(call.principal.owner, before, limit + 1));
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last ? `${last.createdAt}-${last.key}` : null;
  const uploads = page.map((row) => ({ ...describe(call, row), createdAt: new Date(row.createdAt).toISOString() }));
  return Response.json({ uploads, cursor: next });
}

/** Somebody else's link and one that never was are the same to the caller. */
async function remove(call: Call): Promise<Response> {
  const bucket = bucketOf(call);
  const key = readKey(call);
  const isOwn = await orUnavailable(meterOf(call).removeUpload(call.principal.owner, key.text));
  if (!isOwn) throw unknownUpload;
  // It counts for nothing any more; where this fails the meter removes it, and its owner may ask again.
  await bucket.delete(uploadFile(key.text)).catch(() => {
    throw bucketAway();
  });
  purge(call.ctx, key.text);
  return new Response(null, { status: 204 });
}

function meterOf(call: Call): Remote<UploadCalls> {
  const { payer } = call.principal;
  return remote(call.env.USER_METER, payer, answersWithinMs.needed) as unknown as Remote<UploadCalls>;
}

function linkOf(call: Call, key: string): string {
  return uploadLink(ownOrigin(call.config, call.request.url), key);
}

function describe(
  call: Call,
  { key, type, bytes, expiresAt }: Omit<KeptUpload, "createdAt">,
): z.output<typeof uploadSchema> {
  return { id: key, url: linkOf(call, key), type, bytes, expiresAt: new Date(expiresAt).toISOString() };
}
