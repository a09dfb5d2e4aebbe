// The media that jobs ended with: fetched by link, listed and deleted by whoever's it is.
import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import * as z from "zod";
import { ownOrigin } from "../../config.ts";
import { mediaFields } from "../../contract/media-fields.ts";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { answersWithinMs, type Remote, remote } from "../../wire/remote.ts";
import type { Send } from "../../wire/webhook.ts";
import { behind } from "../behind.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { floodShield } from "../flood-shield.ts";
import { authenticate, permitted } from "../guards.ts";
import type { GalleryCalls } from "../quota/metering.ts";
import type { Images } from "./images.ts";
import { linkOf } from "./links.ts";
import { type MediaKey, mediaKeysOf } from "./media-key.ts";
import { retrieve } from "./retrieval.ts";
import type { Sources } from "./source.ts";

/** Fetches a file of the embedded platform without the network. */
export type OwnMedia = (c: GatewayContext) => Send;

const ownGallery = behind<GatewayEnv>(authenticate, floodShield, permitted("images"));
const cursorPattern = /^(\d{1,15})-([0-9a-z-]{1,128})$/;
const galleryQuery = z.object({
  cursor: z.string().regex(cursorPattern, "expected a cursor of this list").optional(),
  limit: z.coerce.number().int().min(1).max(100).default(50),
});

export function imageRoutes(findImages: (c: GatewayContext) => Images, ownMedia: OwnMedia): Hono<GatewayEnv> {
  const images = new Hono<GatewayEnv>();
  images.get("/images", ownGallery, zValidator("query", galleryQuery, orRefuse), (c) => {
    const { cursor, limit } = c.req.valid("query");
    return list(c, cursor, limit);
  });
  images.get("/images/:key", (c) => serve(c, findImages(c), ownMedia));
  images.delete("/images/:key", ownGallery, (c) => remove(c, findImages(c)));
  return images;
}

async function serve(c: GatewayContext, { reuse }: Images, ownMedia: OwnMedia): Promise<Response> {
  const now = Date.now();
  const key = await readKey(c);
  if (key.expiresAt <= now) throw expired(key);
  const media = await reuse.media(key, now);
  if (!media) throw unknown;
  if (media.expiresAt <= now) throw expired(media);
  const config = c.get("config");
  const waitUntil = (work: Promise<unknown>) => c.executionCtx.waitUntil(work);
  const sources = sourcesOf(c, ownMedia);
  return retrieve({ key, media, sources, request: c.req.raw, cacheUrl: cacheUrlOf(c, key), config, now, waitUntil });
}

const unknown = new Problem("NOT_FOUND", "There is no such image.");

/** Made-up keys end here, before any storage is asked. */
async function readKey(c: GatewayContext): Promise<MediaKey> {
  const key = mediaKeysOf(c.get("config")).read(c.req.param("key") ?? "");
  if (!key) throw unknown;
  return key;
}

function expired({ expiresAt }: Pick<MediaKey, "expiresAt">): Problem {
  return new Problem("GONE", `This link expired at ${new Date(expiresAt).toISOString()}.`);
}

function originOf(c: GatewayContext): string {
  return ownOrigin(c.get("config"), c.req.url);
}

function cacheUrlOf(c: GatewayContext, { text }: MediaKey): string {
  return linkOf(new URL(c.req.url).origin, text);
}

function sourcesOf(c: GatewayContext, ownMedia: OwnMedia): Sources {
  return {
    hosts: c.get("config").mediaHosts,
    send: (request) => fetch(request),
    own: (url) => (isOwn(c, url) ? ownMedia(c) : undefined),
  };
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])$/;

/** The embedded platform's own files; on a developer's machine under whichever name it is called. */
function isOwn(c: GatewayContext, url: URL): boolean {
  const { upstream, publicUrl, local } = c.get("config");
  if (upstream.kind !== "embedded" || !/^\/platform\/media\/[^/]+$/.test(url.pathname)) return false;
  const origins = [new URL(c.req.url).origin, publicUrl && new URL(publicUrl).origin];
  return origins.includes(url.origin) || (local && loopback.test(url.hostname));
}

async function list(c: GatewayContext, cursor: string | undefined, limit: number): Promise<Response> {
  const [, completedAt, after] = cursorPattern.exec(cursor ?? "") ?? [];
  const before = after === undefined ? undefined : { completedAt: Number(completedAt), key: after };
  const { owner } = c.get("principal");
  const rows = await reached(galleryOf(c).gallery(owner, before, limit + 1));
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last ? `${last.completedAt}-${last.key}` : null;
  const images = page.map(({ key, completedAt, expiresAt, ...row }) => ({
    key,
    url: linkOf(originOf(c), key),
    ...row,
    completedAt: new Date(completedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  }));
  return c.json({ images, cursor: next });
}

/** Somebody else's link and one that never was are the same to the caller. */
async function remove(c: GatewayContext, { reuse }: Images): Promise<Response> {
  const key = await readKey(c);
  const now = Date.now();
  if (key.expiresAt <= now) throw expired(key);
  const { owner } = c.get("principal");
  const media = await reuse.media(key, now);
  if (!media || media.owner !== owner) throw unknown;
  // The link goes last: where that fails, its owner asks for the same again.
  await reached(galleryOf(c).removeFromGallery(owner, key.text));
  await reuse.remove(key, now);
  c.executionCtx.waitUntil(caches.default.delete(cacheUrlOf(c, key)).catch(() => false));
  return c.body(null, 204);
}

function galleryOf(c: GatewayContext): Remote<GalleryCalls> {
  const { payer } = c.get("principal");
  return remote(c.env.USER_METER, payer, answersWithinMs.needed) as unknown as Remote<GalleryCalls>;
}

function reached<T>(answer: Promise<T>): Promise<T> {
  return answer.catch(() => {
    throw new Problem("METER_UNAVAILABLE", "Your images cannot be listed at the moment.", { "Retry-After": "1" });
  });
}

const imageSchema = z
  .object({
    key: z.string(),
    url: z.url(),
    field: z.enum(mediaFields),
    model: z.string(),
    cost: z.number().nullable().describe("USD."),
    size: z.number().nullable().describe("Bytes, where they are known."),
    completedAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: "Image" });
const called = ["UNAUTHORIZED", "TOKEN_EXPIRED", "TOKEN_REVOKED", "OPERATION_FORBIDDEN", "METER_UNAVAILABLE"] as const;

export const imageOperations: readonly Operation[] = [
  {
    method: "get",
    path: "/images",
    summary: "Your media, newest first",
    access: "user",
    query: galleryQuery,
    answer: z.object({ images: z.array(imageSchema), cursor: z.string().nullable() }),
    errors: [...called, "INVALID_REQUEST"],
  },
  {
    method: "get",
    path: "/images/{key}",
    summary: "A picture, film or sound",
    access: "public",
    contentType: "application/octet-stream",
    answer: z.string().meta({ format: "binary" }),
    errors: ["NOT_FOUND", "GONE", "RANGE_NOT_SATISFIABLE", "MEDIA_REFUSED", "MEDIA_UNAVAILABLE", "UNAVAILABLE"],
  },
  {
    method: "delete",
    path: "/images/{key}",
    summary: "Delete a link of yours",
    access: "user",
    status: 204,
    errors: [...called, "NOT_FOUND", "GONE", "UNAVAILABLE"],
  },
];
