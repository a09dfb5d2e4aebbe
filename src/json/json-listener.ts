// The interface between the JSON scanner and its listener: what the scanner reports, and what the listener asks it to
// watch or keep.

export type Kind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** A longer name, as written, is told without its bytes. */
export const MAX_KEY_BYTES = 1024;

/**
 * Answers to `value`: read past it, or (a container) tell its members. A positive number keeps a value of that size.
 */
export const SKIM = 0;
export const WATCH = -1;

/** Hears of the top value and of watched containers' members. Indices are into the bytes of the scan under way. */
export interface JsonListener {
  /** A name as written, between its quotes; `start` is -1 when it was too long to keep. */
  key(depth: number, bytes: Uint8Array, start: number, end: number): void;
  /** A value begins in a container `depth` deep: `SKIM`, `WATCH`, or how many bytes of it to keep until its end. */
  value(depth: number, kind: Kind, at: number): number;
  /** The value ended; `start` is -1 unless it was kept whole. */
  end(depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number): void;
  /** A comma between two members of a container that is watched. */
  comma?(depth: number, at: number): void;
  /** `count` bytes have left the front of the buffer: later indices are smaller by that. */
  shifted?(count: number): void;
}
