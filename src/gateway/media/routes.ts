// Media of finished jobs: fetched by link, listed and deleted by its owner.
import * as z from "zod";
import { ownOrigin } from "../../config.ts";
import { mediaFields } from "../../contract/media-fields.ts";
import { answersWithinMs, type Remote, remote } from "../../durable/remote.ts";
import { Problem } from "../../errors.ts";
import type { Send } from "../../http/webhook.ts";
import type { Call } from "../call.ts";
import { type GatewayRoute, gatewayRoute } from "../gateway-route.ts";
import { authenticate } from "../identity/authenticate.ts";
import { floodShield } from "../identity/flood-shield.ts";
import { callerErrors, permitted } from "../identity/scope.ts";
import type { GalleryCalls } from "../quota/gallery-calls.ts";
import { orUnavailable } from "../quota/meter-stub.ts";
import { imagesOf } from "./images.ts";
import { linkOf } from "./links.ts";
import { type MediaKey, mediaKeysOf } from "./media-key.ts";
import { hasCacheInFront, purge } from "./public-file.ts";
import { retrieve } from "./retrieval.ts";
import type { Sources } from "./source.ts";

/** Fetches a file of the embedded platform without the network. */
export type OwnMedia = (call: Call) => Send;

const ownGallery = [authenticate, floodShield, permitted("images")];
const notListed = "Your images cannot be listed at the moment.";
const cursorPattern = /^(\d{1,15})-([0-9a-z-]{1,128})$/;
const galleryQuery = z.object({
  cursor: z.string().regex(cursorPattern, "expected a cursor of this list").optional(),
  limit: z.coerce.number().int().min(1).max(100).default(50),
});

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

export function imageRoutes(ownMedia: OwnMedia): GatewayRoute[] {
  return [
    gatewayRoute(
      {
        method: "get",
        path: "/images",
        summary: "Your media, newest first",
        access: "user",
        query: galleryQuery,
        answer: z.object({ images: z.array(imageSchema), cursor: z.string().nullable() }),
        errors: [...callerErrors, "METER_UNAVAILABLE"],
      },
      ownGallery,
      (call, { query: { cursor, limit } }) => list(call, cursor, limit),
    ),
    gatewayRoute(
      {
        method: "get",
        path: "/images/:key",
        summary: "A picture, film or sound",
        access: "public",
        cache: "public",
        contentType: "application/octet-stream",
        answer: z.string().meta({ format: "binary" }),
        errors: ["NOT_FOUND", "GONE", "RANGE_NOT_SATISFIABLE", "MEDIA_REFUSED", "MEDIA_UNAVAILABLE", "UNAVAILABLE"],
      },
      [],
      (call) => serve(call, ownMedia),
    ),
    gatewayRoute(
      {
        method: "delete",
        path: "/images/:key",
        summary: "Delete a link of yours",
        access: "user",
        status: 204,
        errors: [...callerErrors, "METER_UNAVAILABLE", "NOT_FOUND", "GONE", "UNAVAILABLE"],
      },
      ownGallery,
      remove,
    ),
  ];
}

async function serve(call: Call, ownMedia: OwnMedia): Promise<Response> {
  const { config, env, request } = call;
  const { reuse } = imagesOf(config, env);
  const now = Date.now();
  const key = readKey(call);
  if (key.expiresAt <= now) throw expired(key);
  const media = await call.timed("kv", reuse.media(key, now));
  if (!media) throw unknown;
  if (media.expiresAt <= now) throw expired(media);
  const waitUntil = (work: Promise<unknown>) => call.waitUntil(work);
  const sources = sourcesOf(call, ownMedia);
  const isCachedInFront = hasCacheInFront(call.ctx);
  const cacheUrl = cacheUrlOf(call, key);
  return retrieve({ key, media, sources, request, cacheUrl, config, now, isCachedInFront, waitUntil });
}

const unknown = new Problem("NOT_FOUND", "There is no such image.");

/** Made-up keys end here, before any storage is asked. */
function readKey({ config, params }: Call): MediaKey {
  const key = mediaKeysOf(config).read(params["key"] ?? "");
  if (!key) throw unknown;
  return key;
}

function expired({ expiresAt }: Pick<MediaKey, "expiresAt">): Problem {
  return new Problem("GONE", `This link expired at ${new Date(expiresAt).toISOString()}.`);
}

function originOf({ config, request }: Call): string {
  return ownOrigin(config, request.url);
}

function cacheUrlOf({ request }: Call, { text }: MediaKey): string {
  return linkOf(new URL(request.url).origin, text);
}

function sourcesOf(call: Call, ownMedia: OwnMedia): Sources {
  return {
    hosts: call.config.mediaHosts,
    send: (request) => fetch(request),
    own: (url) => (isOwn(call, url) ? ownMedia(call) : undefined),
  };
}

const loopback = /^(localhost|127\.0\.0\.1|\[::1\])$/;

/** The embedded platform's own files; on a developer's machine under whichever name it is called. */
function isOwn({ config, request }: Call, url: URL): boolean {
  const { upstream, publicUrl, local } = config;
  if (upstream.kind !== "embedded" || !/^\/platform\/media\/[^/]+$/.test(url.pathname)) return false;
  const origins = [new URL(request.url).origin, publicUrl && new URL(publicUrl).origin];
  return origins.includes(url.origin) || (local && loopback.test(url.hostname));
}

async function list(call: Call, cursor: string | undefined, limit: number): Promise<Response> {
  const [, completedAt, after] = cursorPattern.exec(cursor ?? "") ?? [];
  const before = after === undefined ? undefined : { completedAt: Number(completedAt), key: after };
  const { owner } = call.principal;
  const rows = await orUnavailable(galleryOf(call).gallery(owner, before, limit + 1), notListed);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last ? `${last.completedAt}-${last.key}` : null;
  const images = page.map(({ key, completedAt, expiresAt, ...row }) => ({
    key,
    url: linkOf(originOf(call), key),
    ...row,
    completedAt: new Date(completedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  }));
  return Response.json({ images, cursor: next });
}

/** Another owner's link and one that never existed are answered alike. */
async function remove(call: Call): Promise<Response> {
  const { reuse } = imagesOf(call.config, call.env);
  const key = readKey(call);
  const now = Date.now();
  if (key.expiresAt <= now) throw expired(key);
  const { owner } = call.principal;
  const media = await call.timed("kv", reuse.media(key, now));
  if (!media || media.owner !== owner) throw unknown;
  // The link goes last: where that fails, its owner asks for the same again.
  await orUnavailable(galleryOf(call).removeFromGallery(owner, key.text), notListed);
  await reuse.remove(key, now);
  purge(call.ctx, key.text);
  call.waitUntil(caches.default.delete(cacheUrlOf(call, key)).catch(() => false));
  return new Response(null, { status: 204 });
}

function galleryOf({ env, principal }: Call): Remote<GalleryCalls> {
  return remote(env.USER_METER, principal.payer, answersWithinMs.needed) as unknown as Remote<GalleryCalls>;
}
