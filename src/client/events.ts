// Server-sent events, read with `fetch`: the token goes in a header, which EventSource cannot send.
import { pause } from "./call.ts";
import { SluiceError } from "./errors.ts";

export interface ServerEvent {
  readonly name: string;
  /** What its JSON says. */
  readonly data: unknown;
}

/** The gateway sends a comment every 15 seconds: where nothing comes for longer, something on the way holds it back. */
const silenceMs = 25_000;

/** Each event as it comes. Throws where the stream ends, breaks or falls silent: whoever has heard enough leaves before. */
export async function* readEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerEvent, never> {
  const reader = (body ?? new Blob().stream()).getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read()).catch(brokeOff);
      if (done) brokeOff();
      const piece = decoder.decode(value, { stream: true });
      text += piece;
      // A large event comes in many pieces: it is searched once, with the piece that ends it.
      if (!/(^|\n)\n/.test(piece)) continue;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const name = /^event: (.*)$/m.exec(block)?.[1];
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (name && data) yield { name, data: await new Response(data).json().catch(brokeOff) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function brokeOff(cause?: unknown): never {
  throw new SluiceError("NETWORK", "The events broke off.", { cause });
}

export async function inTime<T>(read: Promise<T>): Promise<T> {
  const over = new AbortController();
  const silence = pause(silenceMs, over.signal).then(brokeOff);
  return Promise.race([read, silence]).finally(() => over.abort());
}
