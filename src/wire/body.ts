// Reading a body that is held whole: bounded before the first byte where it says its length, and as it flows.
import { Problem } from "../errors.ts";

export async function readWhole(request: Request, limitBytes: number): Promise<Uint8Array> {
  const tooLarge = new Problem("PAYLOAD_TOO_LARGE", `The body is larger than ${limitBytes} bytes.`);
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > limitBytes) throw tooLarge;
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of request.body ?? []) {
    size += piece.byteLength;
    if (size > limitBytes) throw tooLarge;
    pieces.push(piece);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new Problem("INVALID_JSON", "body: is not valid JSON");
  }
}
