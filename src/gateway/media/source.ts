// Fetches media from the URL that an answer names. The URL is not trusted: each redirect is checked like the first
// address.
import { Problem } from "../../errors.ts";
import type { Send } from "../../http/webhook.ts";
import { refuseTarget } from "../../http/webhook-target.ts";
import { inTime } from "../../isolate/in-time.ts";
import { type FileKind, sniff, sniffBytes } from "./sniff.ts";

export const maxMediaBytes = 64 * 1024 * 1024;
const maxRedirects = 3;
const headTimeoutMs = 15_000;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface Sources {
  /** Hosts that media may lie on; empty is any public one. */
  readonly hosts: readonly string[];
  readonly send: Send;
  /** The embedded platform's own files, fetched without the network; undefined for any other URL. */
  readonly own: (url: URL) => Send | undefined;
}

export interface Opened {
  readonly response: Response;
  readonly kind: FileKind;
  /** Undefined where the source does not say it. */
  readonly size: number | undefined;
  readonly head: Uint8Array;
  readonly rest: ReadableStreamBYOBReader;
}

/** The whole file, its first bytes looked at. */
export async function openMedia(sources: Sources, url: string): Promise<Opened> {
  const response = await fetchMedia(sources, url, undefined);
  if (response.status !== 200) return drop(response, unavailable(response.status));
  return look(response, sizeOf(response));
}

/** What kind of file it is, by a few bytes of it. */
export async function sniffMedia(sources: Sources, url: string): Promise<FileKind> {
  const response = await fetchMedia(sources, url, `bytes=0-${sniffBytes - 1}`);
  if (response.status !== 200 && response.status !== 206) return drop(response, unavailable(response.status));
  const { kind, rest } = await look(response, undefined);
  await rest.cancel().catch(() => {});
  return kind;
}

/** Redirects are followed by hand; no key, no cookie, no header of the caller's goes along. */
export async function fetchMedia(sources: Sources, from: string, range: string | undefined): Promise<Response> {
  let url = from;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const response = await send(sources, url, range);
    const location = response.headers.get("Location");
    if (!redirects.has(response.status) || location === null) return response;
    await response.body?.cancel().catch(() => {});
    url = URL.parse(location, url)?.href ?? location;
  }
  throw new Problem("MEDIA_REFUSED", "The media's address redirects too often.");
}

async function send(sources: Sources, url: string, range: string | undefined): Promise<Response> {
  const target = URL.parse(url);
  const own = target === null ? undefined : sources.own(target);
  const refused = own ? undefined : refuseSource(url, sources.hosts);
  if (refused) throw new Problem("MEDIA_REFUSED", `The media's address ${refused}.`);
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), headTimeoutMs);
  try {
    const headers = { Accept: "image/*, video/*, audio/*", ...(range !== undefined && { Range: range }) };
    const request = new Request(url, { headers, redirect: "manual", signal: abort.signal });
    return await (own ?? sources.send)(request);
  } catch {
    throw new Problem("MEDIA_UNAVAILABLE", "The media cannot be fetched at the moment.");
  } finally {
    clearTimeout(timer);
  }
}

/** Where hosts are named, no other is called. */
export function refuseSource(url: string, hosts: readonly string[]): string | undefined {
  const refused = refuseTarget(url, hosts);
  if (refused || hosts.length === 0) return refused;
  const { hostname, host } = new URL(url);
  return hosts.includes(hostname) || hosts.includes(host) ? undefined : "is not on a host of media";
}

async function look(response: Response, size: number | undefined): Promise<Opened> {
  if (size !== undefined && size > maxMediaBytes) return drop(response, tooLarge);
  if (!response.body) throw noMedia;
  const rest = response.body.getReader({ mode: "byob" });
  const first = rest.readAtLeast(sniffBytes, new Uint8Array(sniffBytes));
  const { value: head = new Uint8Array() } = await inTime(headTimeoutMs, first).catch((error: unknown) => {
    rest.cancel(error).catch(() => {});
    throw new Problem("MEDIA_UNAVAILABLE", "The media's own server sends nothing of it.");
  });
  const kind = sniff(head);
  if (kind) return { response, kind, size, head, rest };
  await rest.cancel().catch(() => {});
  throw noMedia;
}

/** A compressed body's length says nothing about the file's. */
function sizeOf({ headers }: Response): number | undefined {
  const length = headers.get("Content-Length") ?? "";
  return headers.has("Content-Encoding") || !/^\d{1,15}$/.test(length) ? undefined : Number(length);
}

const noMedia = new Problem("MEDIA_REFUSED", "The file is no picture, video or sound that is served here.");
const tooLarge = new Problem("MEDIA_REFUSED", `The file is larger than ${maxMediaBytes} bytes.`);

function unavailable(status: number): Problem {
  return new Problem("MEDIA_UNAVAILABLE", `The media's own server answered ${status}.`);
}

async function drop(response: Response, problem: Problem): Promise<never> {
  await response.body?.cancel().catch(() => {});
  throw problem;
}
