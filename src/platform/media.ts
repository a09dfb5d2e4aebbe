// Files that samples make: kept in R2, served until their time is over.
import { limits } from "../contract/limits.ts";
import { Problem } from "../errors.ts";
import { headersForAnyone } from "../http/cors.ts";
import type { SampleFile } from "../samples/run-sample.ts";
import { type PlatformRoute, platformRoute } from "./platform-route.ts";

const filePattern = /^([a-z0-9]{1,12})-[0-9a-f]{32}\.[a-z0-9]{2,4}$/;

/** The moment of expiry is part of the name, so that an expired file is known as such without asking for it. */
function newFileName(extension: string, expiresAt: number): string {
  return `${expiresAt.toString(36)}-${crypto.randomUUID().replaceAll("-", "")}.${extension}`;
}

function expiryOf(file: string): number | undefined {
  const [, moment] = filePattern.exec(file) ?? [];
  return moment === undefined ? undefined : Number.parseInt(moment, 36);
}

/** Where the file can be fetched from. */
export async function putMedia(bucket: R2Bucket, origin: string, file: SampleFile, now: number): Promise<string> {
  const name = newFileName(file.extension, now + limits.mediaLifetimeMs);
  await bucket.put(name, file.bytes, { httpMetadata: { contentType: file.contentType } });
  return `${origin}/platform/media/${name}`;
}

const notNow = new Problem("UNAVAILABLE", "The file cannot be read at the moment.", { "Retry-After": "1" });
const noSuchFile = new Problem("NOT_FOUND", "There is no such file.");

export const mediaRoutes: readonly PlatformRoute[] = [
  platformRoute(
    {
      method: "get",
      path: "/platform/media/:file",
      summary: "A file that a sample model made",
      access: "public",
      cache: "public",
      contentType: "application/octet-stream",
      errors: ["NOT_FOUND", "GONE", "UNAVAILABLE"],
    },
    [],
    async (call) => {
      const name = call.params["file"] ?? "";
      const expiresAt = expiryOf(name);
      if (expiresAt === undefined) throw noSuchFile;
      const leftMs = expiresAt - Date.now();
      if (leftMs <= 0) {
        call.waitUntil(call.env.MEDIA.delete(name));
        throw new Problem("GONE", `This file expired at ${new Date(expiresAt).toISOString()}.`);
      }
      const headOnly = call.request.method === "HEAD";
      const file = await (headOnly ? call.env.MEDIA.head(name) : call.env.MEDIA.get(name)).catch(() => {
        throw notNow;
      });
      if (!file) throw noSuchFile;
      const headers = {
        "Content-Type": file.httpMetadata?.contentType ?? "application/octet-stream",
        "Content-Length": String(file.size),
        "Cache-Control": `public, max-age=${Math.floor(leftMs / 1000)}, immutable, must-revalidate`,
        "Cross-Origin-Resource-Policy": "cross-origin",
        ETag: file.httpEtag,
        ...headersForAnyone(call.config.allowedOrigins),
      };
      return new Response(headOnly ? null : (file as R2ObjectBody).body, { headers });
    },
  ),
];
