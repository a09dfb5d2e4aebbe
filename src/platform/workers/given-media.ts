// The files that a job's input leads to, as the built-in workers read them: our own without the network, others from public hosts.

import { readBounded } from "../../http/small-body.ts";
import { isPublicHost } from "../../http/webhook-target.ts";

const mostBytes = 10 * 1024 * 1024;
/** For a file to come. */
const patienceMs = { own: 5000, foreign: 3000 } as const;
/** So many are read and held at once; who waits for longer than that goes without. */
const atOnce = 3;
const queueMs = 5000;
/** Where our own files lie: nothing else of the gateway is asked. */
const ownFiles = /^\/(uploads|images|platform\/media)\/[\w.-]{1,128}$/;

export interface FileSources {
  /** Where the platform was called. */
  readonly origin: string;
  readonly exports: Cloudflare.Exports;
}

/** Of one object. */
export class GivenMedia {
  #reading = 0;
  readonly #waiting = new Set<() => void>();

  /** Holds the file until it was used. Undefined where it cannot be had. */
  async use<T>(url: string, sources: FileSources, work: (bytes: Uint8Array) => Promise<T>): Promise<T | undefined> {
    if (!(await this.#enter())) return undefined;
    try {
      const bytes = await read(url, sources);
      return bytes && (await work(bytes));
    } catch {
      return undefined;
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<boolean> {
    if (this.#reading < atOnce) {
      this.#reading++;
      return true;
    }
    const turn = Promise.withResolvers<boolean>();
    const take = () => turn.resolve(true);
    this.#waiting.add(take);
    const timer = setTimeout(() => turn.resolve(false), queueMs);
    const isIn = await turn.promise;
    clearTimeout(timer);
    this.#waiting.delete(take);
    return isIn;
  }

  /** Its place goes to the next one. */
  #leave(): void {
    const [next] = this.#waiting;
    if (!next) this.#reading--;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}

async function read(text: string, { origin, exports }: FileSources): Promise<Uint8Array | undefined> {
  const url = URL.parse(text);
  if (!url) return undefined;
  const isOwn = url.origin === origin && ownFiles.test(url.pathname);
  if (!isOwn && !isForeign(url, origin)) return undefined;
  const signal = AbortSignal.timeout(isOwn ? patienceMs.own : patienceMs.foreign);
  // Another host may not lead to a third one.
  const request = new Request(url, { redirect: "manual", signal });
  const response = await (isOwn ? exports.default.fetch(request) : fetch(request));
  if (response.ok && Number(response.headers.get("Content-Length") ?? 0) <= mostBytes) {
    return readBounded(response.body, mostBytes);
  }
  await response.body?.cancel();
  return undefined;
}

function isForeign({ protocol, hostname, port, username, password, origin: there }: URL, origin: string): boolean {
  if (there === origin || protocol !== "https:") return false;
  return port === "" && username === "" && password === "" && isPublicHost(hostname);
}
