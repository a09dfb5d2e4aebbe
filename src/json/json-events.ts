// Calls the scanner's listener, and keeps the bytes of names and values that the listener asked for.
import type { JsonListener, Kind } from "./json-listener.ts";

/**
 * Its fields are `private`, not `#`: V8 threw away the scanner's compiled loop each time it came to store a `#field`.
 */
export class JsonTelling {
  /** Where the kept key or value begins, or -1. Only one is kept at a time: a kept container is not watched. */
  private mark = -1;
  private limit = 0;
  /** Where the open values of watched containers began, counted from the text's beginning. */
  private readonly starts: number[] = [];
  private shifted = 0;
  private readonly listener: JsonListener;

  constructor(listener: JsonListener) {
    this.listener = listener;
  }

  /** Keeps the bytes from `at` on, unless they become more than `limit`. */
  keep(at: number, limit: number): void {
    this.mark = at;
    this.limit = limit;
  }

  /** The first byte that must stay in the buffer when the scan stopped at `next`. */
  held(next: number): number {
    return this.mark >= 0 ? this.mark : next;
  }

  /** The scan stopped at `next`: what has become too long is not kept any longer. */
  stopped(next: number): void {
    if (this.mark >= 0 && next - this.mark > this.limit) this.mark = -1;
  }

  shift(count: number): void {
    this.shifted += count;
    if (this.mark >= 0) this.mark -= count;
  }

  /** A value begins; the listener's wish for it. */
  begin(depth: number, kind: Kind, at: number): number {
    this.starts[depth] = this.shifted + at;
    const wish = this.listener.value(depth, kind, at);
    if (wish > 0) this.keep(at, wish);
    return wish;
  }

  comma(depth: number, at: number): void {
    this.listener.comma?.(depth, at);
  }

  named(depth: number, bytes: Uint8Array, end: number): void {
    this.listener.key(depth, bytes, this.release(end), end);
  }

  end(depth: number, kind: Kind, bytes: Uint8Array, end: number): void {
    const size = this.shifted + end - (this.starts[depth] ?? 0);
    this.listener.end(depth, kind, bytes, this.release(end), end, size);
  }

  /** Gives up the kept bytes; where they began, or -1. */
  private release(end: number): number {
    const start = this.mark >= 0 && end - this.mark <= this.limit ? this.mark : -1;
    this.mark = -1;
    return start;
  }
}
