// Pieces of bytes as one.

/** Where their size is not known, the pieces are gone through twice. */
export function concat(pieces: Iterable<Uint8Array>, size = sizeOf(pieces)): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

function sizeOf(pieces: Iterable<Uint8Array>): number {
  let size = 0;
  for (const { byteLength } of pieces) size += byteLength;
  return size;
}
