// What a decoder throws for bytes that are no picture. It never leaves `readPicture`.

export class Unreadable extends Error {}

/** Of a picture that was given, at most so many pixels are held; a larger one is made smaller as it is read. */
export const heldPixels = 1024 * 1024;

/** Of a WebP each pixel hangs on those before it, so that all are decoded: a larger one would take too long. */
export const webpPixels = 4 * 1024 * 1024;

export function demand(isSo: boolean, otherwise: string): asserts isSo {
  if (!isSo) throw new Unreadable(otherwise);
}
