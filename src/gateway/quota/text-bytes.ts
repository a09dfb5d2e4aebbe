// How much text an output holds, whatever its shape: the bytes of all its strings, since a token is text.

const encoder = new TextEncoder();
/** Chunks are short: measured here they leave no garbage. */
const scratch = new Uint8Array(64 * 1024);
const mostBytesOfUnit = 3;

export function bytesOfText(output: unknown): number {
  if (typeof output === "string") return bytesOf(output);
  let bytes = 0;
  for (let level: unknown[] = [output]; level.length > 0; ) {
    const deeper: unknown[] = [];
    for (const value of level) {
      if (typeof value === "string") bytes += bytesOf(value);
      else if (typeof value === "object" && value !== null) {
        for (const inner of Object.values(value)) deeper.push(inner);
      }
    }
    level = deeper;
  }
  return bytes;
}

function bytesOf(text: string): number {
  if (text.length * mostBytesOfUnit > scratch.byteLength) return encoder.encode(text).byteLength;
  return encoder.encodeInto(text, scratch).written;
}
