// What a webhook carries, the final status with `input` and `webhook`, and the way it goes.
import { postWebhook } from "../../wire/webhook.ts";
import type { Notice } from "./outbox.ts";
import { bodyOf, type Payloads } from "./payloads.ts";

const encoder = new TextEncoder();

/** A notice to our own origin stays inside: a Worker cannot always reach itself from outside. */
export function deliver(notice: Notice, payloads: Payloads, exports: Cloudflare.Exports): Promise<boolean> {
  const { pieces, size } = noticeBody(notice, payloads);
  const own = URL.canParse(notice.url) && new URL(notice.url).origin === notice.origin;
  const send = own ? (request: Request) => exports.default.fetch(request) : (request: Request) => fetch(request);
  return postWebhook(notice.url, bodyOf(pieces, size), {}, send);
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
