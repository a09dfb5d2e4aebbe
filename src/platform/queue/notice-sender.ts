// Sends webhooks: the final status with `input` and `webhook`, and tries again what failed.
import { postWebhook } from "../../http/webhook.ts";
import type { JobStore } from "./job-store.ts";
import type { JobNotice } from "./notice-outbox.ts";
import { bodyOf, type Payloads } from "./payloads.ts";

const encoder = new TextEncoder();

/** How many connections one invocation may have waiting for an answer. */
const atOnce = 6;
/** How many notices are under way at most; the others wait in the outbox. */
const maxUnderway = 48;

export interface NoticeSenderDeps {
  readonly store: JobStore;
  readonly exports: Cloudflare.Exports;
  readonly now: () => number;
  /** Keeps the object awake until a notice was received or given up. */
  readonly waitUntil: (promise: Promise<unknown>) => void;
  readonly settled: () => void;
}

/** Sends the notices of the outbox, and removes each once it was received or given up. */
export class NoticeSender {
  readonly #deps: NoticeSenderDeps;
  #underway = 0;

  constructor(deps: NoticeSenderDeps) {
    this.#deps = deps;
  }

  /** Undefined while as many are under way as may be: the end of the next one looks again. */
  nextDue(): number | undefined {
    return this.#underway < maxUnderway ? this.#deps.store.outbox.nextDue() : undefined;
  }

  send(): void {
    const { store, now, waitUntil } = this.#deps;
    store.transaction(() => {
      for (const notice of store.outbox.dropSpent(now())) this.#release(notice);
    });
    const room = Math.min(atOnce, maxUnderway - this.#underway);
    for (const notice of store.transaction(() => store.outbox.claim(now(), room))) waitUntil(this.#sendOne(notice));
  }

  async #sendOne(notice: JobNotice): Promise<void> {
    const { store, exports, now, settled } = this.#deps;
    this.#underway += 1;
    const received = await deliver(notice, store, exports);
    this.#underway -= 1;
    store.transaction(() => {
      if (store.outbox.settle(notice, received, now())) this.#release(notice);
    });
    settled();
  }

  #release({ job, input, output }: JobNotice): void {
    this.#deps.store.release(job, input);
    this.#deps.store.release(job, output);
  }
}

/** A notice to our own origin stays inside: a Worker cannot always reach itself from outside. */
async function deliver(notice: JobNotice, { payloads }: JobStore, exports: Cloudflare.Exports): Promise<boolean> {
  try {
    const { pieces, size } = noticeBody(notice, payloads);
    const own = URL.canParse(notice.url) && new URL(notice.url).origin === notice.origin;
    const send = own ? (request: Request) => exports.default.fetch(request) : (request: Request) => fetch(request);
    return await postWebhook(notice.url, bodyOf(pieces, size), {}, send);
  } catch {
    return false;
  }
}

function noticeBody(notice: JobNotice, payloads: Payloads) {
  const { head, input, inputFrom, inputTo, output, url } = notice;
  const outputSize = output === null ? 0 : payloads.size(output);
  const before = encoder.encode(`${head.slice(0, -1)}${output === null ? "" : ',"output":'}`);
  const between = encoder.encode(',"input":');
  const after = encoder.encode(`,"webhook":${JSON.stringify(url)}}`);
  const size = before.byteLength + outputSize + between.byteLength + (inputTo - inputFrom) + after.byteLength;
  function* pieces() {
    yield before;
    if (output !== null) yield* payloads.read({ key: output, from: 0, to: outputSize });
    yield between;
    yield* payloads.read({ key: input, from: inputFrom, to: inputTo });
    yield after;
  }
  return { pieces: pieces(), size };
}
