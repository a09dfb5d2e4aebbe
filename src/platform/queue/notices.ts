// What a webhook carries, the final status with `input` and `webhook`, and the way it goes.
import { postWebhook } from "../../wire/webhook.ts";
import type { JobStore } from "./job-store.ts";
import type { Notice } from "./outbox.ts";
import { bodyOf, type Payloads } from "./payloads.ts";

const encoder = new TextEncoder();

/** As many as one invocation may have connections that wait for their answer. */
const atOnce = 6;
/** Slow receivers hold this many at most; the others wait in the outbox. */
const maxUnderway = 48;

export interface Around {
  readonly store: JobStore;
  readonly exports: Cloudflare.Exports;
  readonly now: () => number;
  /** Keeps the object awake until a notice is settled. */
  readonly waitUntil: (promise: Promise<unknown>) => void;
  readonly settled: () => void;
}

/** Brings what is owed to its receivers, and forgets it once it was received or given up. */
export class Courier {
  readonly #around: Around;
  #underway = 0;

  constructor(around: Around) {
    this.#around = around;
  }

  /** While all hands are full, the next one to be settled asks again. */
  nextDue(): number | undefined {
    return this.#underway < maxUnderway ? this.#around.store.outbox.nextDue() : undefined;
  }

  send(): void {
    const { store, now, waitUntil } = this.#around;
    store.transaction(() => {
      for (const notice of store.outbox.dropSpent(now())) this.#release(notice);
    });
    const room = Math.min(atOnce, maxUnderway - this.#underway);
    for (const notice of store.transaction(() => store.outbox.claim(now(), room))) waitUntil(this.#bring(notice));
  }

  async #bring(notice: Notice): Promise<void> {
    const { store, exports, now, settled } = this.#around;
    this.#underway += 1;
    const received = await deliver(notice, store, exports);
    this.#underway -= 1;
    store.transaction(() => {
      if (store.outbox.settle(notice, received, now())) this.#release(notice);
    });
    settled();
  }

  #release({ job, input, output }: Notice): void {
    this.#around.store.release(job, input);
    this.#around.store.release(job, output);
  }
}

/** A notice to our own origin stays inside: a Worker cannot always reach itself from outside. */
async function deliver(notice: Notice, { payloads }: JobStore, exports: Cloudflare.Exports): Promise<boolean> {
  try {
    const { pieces, size } = noticeBody(notice, payloads);
    const own = URL.canParse(notice.url) && new URL(notice.url).origin === notice.origin;
    const send = own ? (request: Request) => exports.default.fetch(request) : (request: Request) => fetch(request);
    return await postWebhook(notice.url, bodyOf(pieces, size), {}, send);
  } catch {
    return false;
  }
}

function noticeBody(notice: Notice, payloads: Payloads) {
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
