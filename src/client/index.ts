// The client of a Sluice gateway: for browsers, Node and Workers, with no dependency.

import type { Estimate, Gallery, ListedModel, Usage } from "./answers.ts";
import {
  appsCall,
  type CallOptions,
  callerOf,
  either,
  type Fetch,
  type InternalCall,
  pause,
  untilAborted,
} from "./call.ts";
import type { AnyModel, ChunkOf, InputOf, OutputOf } from "./catalog.ts";
import { abortError } from "./errors.ts";
import { followerOf } from "./follow.ts";
import type { Job, Listeners } from "./job.ts";
import { keepToken, type TokenSource } from "./token.ts";
import { type Uploaded, type UploadOptions, uploaderOf, withLinks } from "./upload.ts";
import { type Store, visitorsToken } from "./visitor.ts";

export type * from "./answers.ts";
export type { CallOptions, Fetch, Sent } from "./call.ts";
export type * from "./catalog.ts";
export { SluiceError } from "./errors.ts";
export type { Job, JobState, Listeners, Upload } from "./job.ts";
export type { Token, TokenSource } from "./token.ts";
export type { Uploaded, UploadOptions } from "./upload.ts";
export type { Store } from "./visitor.ts";

export interface Options {
  /** Where the gateway is: `https://gateway.example.com`. A page of the gateway's own leaves it out. */
  readonly url?: string;
  /** The user's token, or what gets one. Without it the client begins a session, as an anonymous visitor. */
  readonly token?: TokenSource;
  /** Keeps a visitor's session, so that they stay who they are: `localStorage`. */
  readonly storage?: Store;
  readonly fetch?: Fetch;
}

export interface RunOptions extends Listeners {
  /** Cancels the job at the gateway too, wherever it is by then. */
  readonly signal?: AbortSignal | undefined;
  /** The client makes one for each call. With your own, the same call made again is answered with the same job. */
  readonly idempotencyKey?: string;
  readonly webhook?: string;
  readonly policy?: { readonly executionTimeout?: number; readonly ttl?: number; readonly lowPriority?: boolean };
}

export interface FollowOptions extends Listeners {
  /** Cancels the job. */
  readonly signal?: AbortSignal | undefined;
}

export interface Sluice {
  /** Submits a job and waits for its end. Files in the input are uploaded first. Throws where the job does not end well. */
  run<M extends AnyModel>(model: M, input: InputOf<M>, options?: RunOptions): Promise<Job<OutputOf<M>>>;
  /** The same, and tells what goes on meanwhile. */
  subscribe<M extends AnyModel>(model: M, input: InputOf<M>, listeners: RunOptions): Promise<Job<OutputOf<M>>>;
  /** The pieces of a streamed output as they come; returns the job. Leaving the loop cancels the job. */
  stream<M extends AnyModel>(
    model: M,
    input: InputOf<M>,
    options?: Omit<RunOptions, "onChunk">,
  ): AsyncGenerator<ChunkOf<M>, Job<OutputOf<M>>>;
  /** Submits a job and does not wait: `follow` does, also after the page was loaded anew. */
  submit<M extends AnyModel>(model: M, input: InputOf<M>, options?: RunOptions): Promise<{ readonly id: string }>;
  follow<M extends AnyModel>(model: M, id: string, options?: FollowOptions): Promise<Job<OutputOf<M>>>;
  cancel(model: AnyModel, id: string): Promise<void>;
  /** What would be reserved for the job. Starts nothing, costs nothing, and uploads no file. */
  estimate<M extends AnyModel>(model: M, input: InputOf<M>, options?: Asking): Promise<Estimate>;
  upload(file: Blob, options?: UploadOptions): Promise<Uploaded>;
  models(options?: Asking): Promise<readonly ListedModel[]>;
  gallery(options?: Asking & { readonly cursor?: string | undefined; readonly limit?: number }): Promise<Gallery>;
  usage(options?: Asking & { readonly by?: "day" | "model" | "day,model" }): Promise<Usage>;
  /**
   * Any other route, with the caller's token. Throws what the gateway refuses. What may start something (`POST`, `PATCH`)
   * is sent once, unless the headers have an `Idempotency-Key`.
   */
  call(path: string, options?: CallOptions): Promise<Response>;
}

/** A job that cannot be cancelled holds the next one up no longer. */
const longestLeaveMs = 10_000;

export interface Asking {
  readonly signal?: AbortSignal | undefined;
}

export function createSluice({ url = "", token, storage, fetch = globalFetch }: Options = {}): Sluice {
  const origin = url.replace(/\/+$/, "");
  const tokens = keepToken(token ?? visitorsToken(origin, fetch, storage));
  const call = callerOf(origin, tokens, fetch);
  const upload = uploaderOf(call, fetch);
  const followPath = followerOf(call);
  /** Jobs that were aborted and may not be cancelled yet: until then they take a place. */
  const leaving = new Set<Promise<unknown>>();

  const leave = (left: Promise<unknown>) => {
    const waiting = new AbortController();
    const over: Promise<unknown> = Promise.race([left, pause(longestLeaveMs, waiting.signal)])
      .catch(() => {})
      .then(() => {
        waiting.abort();
        leaving.delete(over);
      });
    leaving.add(over);
  };
  const read = async <T>(path: string, request?: InternalCall) =>
    (await (await call(path, { ...request, isJson: true })).json()) as T;

  const link = ({ signal, onState, onUpload }: RunOptions) => {
    let isTold = false;
    return async (file: Blob, field: string) => {
      if (!isTold) onState?.("uploading");
      isTold = true;
      const onProgress =
        onUpload && ((sentBytes: number, totalBytes: number) => onUpload({ field, sentBytes, totalBytes }));
      return (await upload(file, { signal, onProgress })).url;
    };
  };

  const submit: Sluice["submit"] = async (model, input, options = {}) => {
    const { signal, idempotencyKey = newKey(), webhook, policy, onState } = options;
    const linked = await withLinks(input, link(options));
    const submitting = (async () => {
      await Promise.all([tokens.current(), ...leaving]);
      // Sent once, it is asked to its end: the job that comes of it is to be cancelled.
      if (signal?.aborted) throw abortError(signal);
      onState?.("submitting");
      const body = { input: linked, webhook, policy };
      const headers = { "Idempotency-Key": idempotencyKey };
      return read<{ id: string }>(pathOf(model, "run"), { method: "POST", body, headers, starts: "keyed" });
    })();
    return untilAborted(submitting, signal, () => leave(submitting.then(({ id }) => cancel(model, id))));
  };

  const follow = <M extends AnyModel>(model: M, id: string, { signal, ...listeners }: FollowOptions = {}) => {
    const following = followPath<OutputOf<M>>((operation) => pathOf(model, operation, id), listeners, signal);
    return untilAborted(following, signal, () => leave(cancel(model, id)));
  };

  const cancel: Sluice["cancel"] = async (model, id) => {
    await call(pathOf(model, "cancel", id), { method: "POST", keepalive: true });
  };

  const run: Sluice["run"] = async (model, input, options = {}) => {
    const { id } = await submit(model, input, options);
    return follow(model, id, options);
  };

  return {
    run,
    subscribe: run,
    submit,
    follow,
    cancel,
    upload,
    call: appsCall(call),
    async *stream<M extends AnyModel>(model: M, input: InputOf<M>, options: Omit<RunOptions, "onChunk"> = {}) {
      const left = new AbortController();
      const signal = either(left.signal, options.signal);
      const chunks: ChunkOf<M>[] = [];
      let wake = () => {};
      const onChunk = (chunk: unknown) => {
        chunks.push(chunk as ChunkOf<M>);
        wake();
      };
      let isOver = false;
      const running = run(model, input, { ...options, signal, onChunk }).finally(() => {
        isOver = true;
        wake();
      });
      running.catch(() => {});
      try {
        for (;;) {
          while (chunks.length > 0) yield chunks.shift() as ChunkOf<M>;
          if (isOver) return await running;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        if (!isOver) left.abort();
      }
    },
    async estimate(model, input, { signal } = {}) {
      const body = { input: await withLinks(input, async ({ type }) => `data:${type},`) };
      return read(pathOf(model, "estimate"), { method: "POST", body, signal });
    },
    models: async (asking) => (await read<{ models: ListedModel[] }>("/models", asking)).models,
    gallery: ({ cursor, limit, signal } = {}) => read(`/images${queryOf({ cursor, limit })}`, { signal }),
    usage: ({ by, signal } = {}) => read(`/usage${queryOf({ by })}`, { signal }),
  };
}

/** Called as a function of its own: the browser's refuses to be another object's. */
const globalFetch: Fetch = (url, init) => globalThis.fetch(url, init);

/** `/v2/:model/:operation`, or `/v2/:model/:operation/:job`. */
function pathOf(...segments: readonly string[]): string {
  return ["", "v2", ...segments].map(encodeURIComponent).join("/");
}

function queryOf(members: Record<string, string | number | undefined>): string {
  // What is undefined is left out.
  const query = `${new URLSearchParams(JSON.parse(JSON.stringify(members)))}`;
  return query && `?${query}`;
}

/** `randomUUID` is missing on pages that came without TLS. */
const newKey = () => crypto.getRandomValues(new Uint8Array(16)).join("-");
