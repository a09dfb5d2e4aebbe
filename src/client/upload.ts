// Files of an input: each is uploaded, and its link stands in its place.
import { type Call, type Fetch, pause, pauseMs, type Sent } from "./call.ts";
import { abortError, refusalOf, SluiceError } from "./errors.ts";

/** An upload that is there, as the gateway tells it. */
export interface Uploaded {
  readonly id: string;
  readonly url: string;
  /** The file's type and size. */
  readonly type: string;
  readonly bytes: number;
  readonly expiresAt: string;
}

export interface UploadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told by browsers as it goes; elsewhere when it is done. */
  readonly onProgress?: ((sentBytes: number, totalBytes: number) => void) | undefined;
  /** How long the gateway keeps it: a day, unless this says otherwise. */
  readonly ttlSeconds?: number;
}

interface Put {
  readonly url: string;
  readonly headers: Record<string, string>;
}

export type UploadFile = (file: Blob, options?: UploadOptions) => Promise<Uploaded>;

export function uploaderOf(call: Call, fetch: Fetch): UploadFile {
  return async (file, { signal, onProgress, ttlSeconds } = {}) => {
    const body = { type: file.type, bytes: file.size, ttlSeconds };
    const issued = await call("/uploads", { method: "POST", body, signal });
    const { put, ...uploaded } = (await issued.json()) as Uploaded & { readonly put: Put };
    for (let tried = 1; ; tried++) {
      const answer = await send(put, file, fetch, signal, onProgress);
      // Where the answer of the first try was lost, the file is there.
      if (answer?.ok || (answer?.status === 409 && tried > 1)) break;
      if (answer && (answer.status !== 503 || tried === maxTries)) throw await refusalOf(answer);
      if (tried === maxTries) throw new SluiceError("NETWORK", "The file could not be sent.");
      await pause(pauseMs(tried), signal);
    }
    onProgress?.(file.size, file.size);
    return uploaded;
  };
}

const maxTries = 3;

/** Undefined where the connection broke. */
async function send(
  { url, headers }: Put,
  body: Blob,
  fetch: Fetch,
  signal: AbortSignal | undefined,
  onProgress: UploadOptions["onProgress"],
): Promise<Response | undefined> {
  if (signal?.aborted) throw abortError(signal);
  const request = { method: "PUT", headers, body, signal: signal ?? null };
  const sending =
    onProgress && typeof XMLHttpRequest !== "undefined" ? sendByXhr(url, request, onProgress) : fetch(url, request);
  const answer = await sending.catch(() => undefined);
  if (signal?.aborted) throw abortError(signal);
  return answer;
}

/** Browsers have it, Node and Workers do not. */
declare const XMLHttpRequest: new () => {
  readonly status: number;
  readonly responseText: string;
  readonly upload: { onprogress: (event: { readonly loaded: number; readonly total: number }) => void };
  onload: () => void;
  onerror: () => void;
  onabort: () => void;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  send(body: Blob): void;
  abort(): void;
};

/** `fetch` tells no progress of what it sends. */
function sendByXhr(
  url: string,
  { method, headers, body, signal }: Sent & { readonly body: Blob },
  onProgress: (sentBytes: number, totalBytes: number) => void,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded, total);
    request.onload = () => resolve(new Response(request.responseText || null, { status: request.status }));
    request.onerror = request.onabort = reject;
    signal?.addEventListener("abort", () => request.abort(), { once: true });
    request.send(body);
  });
}

/** The input with a link for each File and Blob in it. The input that was given stays as it is. */
export async function withLinks(
  value: unknown,
  link: (file: Blob, field: string) => Promise<string>,
  field = "",
): Promise<unknown> {
  if (value instanceof Blob) return link(value, field);
  if (!value || typeof value !== "object" || "toJSON" in value) return value;
  const within = (name: string) => (field ? `${field}.${name}` : name);
  const members = Object.entries(value).map(
    async ([name, member]) => [name, await withLinks(member, link, within(name))] as const,
  );
  const linked = await Promise.all(members);
  return Array.isArray(value) ? linked.map(([, member]) => member) : Object.fromEntries(linked);
}
