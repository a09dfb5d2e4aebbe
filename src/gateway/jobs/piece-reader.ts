// Reads a stream of events piece by piece: as they come, or, of a fast stream, several of them at once.

/** The buffer grows while reads fill it. */
const pieceBytes = { least: 4 * 1024, most: 32 * 1024 };
/**
 * The pace is that of as many bytes, which came in small pieces. Until they have come, each piece is handed over as it
 * comes: errors, which may say a key, come first.
 */
const measuredBytes = 16 * 1024;
/** So many small pieces in a row make a stream of small pieces. */
const smallPieces = 8;
/**
 * Fast is what brings `measuredBytes` within `withinMs`. Then a read waits for `leastBytes`: where the stream pauses, less
 * than that waits with it, and where it breaks off, that is lost. After a read that took `readMs` the pace is measured
 * anew; after one of `pauseMs` the stream is slow for good.
 */
const fast = { withinMs: 50, leastBytes: 4 * 1024, roomBytes: 8 * 1024, readMs: 10, pauseMs: 50 };

export class PieceReader {
  readonly #reader: ReadableStreamBYOBReader;
  readonly #pace = new Pace();
  #buffer: ArrayBufferLike = new ArrayBuffer(pieceBytes.least);

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader({ mode: "byob" });
  }

  get areSmallAndSlow(): boolean {
    return this.#pace.isSlow;
  }

  /** The piece is valid until the next one is read. */
  async next(): Promise<{ piece: Uint8Array; isLast: boolean }> {
    const { isFast } = this.#pace;
    if (isFast && this.#buffer.byteLength !== fast.roomBytes) this.#buffer = new ArrayBuffer(fast.roomBytes);
    const askedAt = Date.now();
    const { value, done }: ReadableStreamReadResult<Uint8Array> = await this.#reader.readAtLeast(
      isFast ? fast.leastBytes : 1,
      new Uint8Array(this.#buffer),
    );
    const piece = value ?? new Uint8Array();
    const room = piece.buffer.byteLength;
    const isFull = !isFast && piece.byteLength === room && room < pieceBytes.most;
    this.#buffer = isFull ? new ArrayBuffer(2 * room) : piece.buffer;
    this.#pace.brought(piece.byteLength, Date.now() - askedAt);
    return { piece, isLast: done };
  }

  cancel(reason: unknown): void {
    this.#reader.cancel(reason).catch(() => {});
  }

  releaseLock(): void {
    this.#reader.releaseLock();
  }
}

/** How fast a stream of small pieces comes, by what its reads bring. */
export class Pace {
  #pace: "unknown" | "fast" | "slow" = "unknown";
  #bytes = 0;
  #tookMs = 0;
  /** Those that came last, one after the other. */
  #small = 0;

  get isFast(): boolean {
    return this.#pace === "fast";
  }

  /** Known to be slow, and in small pieces now. */
  get isSlow(): boolean {
    return this.#pace === "slow" && this.#small >= smallPieces;
  }

  brought(bytes: number, tookMs: number): void {
    const isSmall = bytes < pieceBytes.least;
    this.#small = isSmall ? this.#small + 1 : 0;
    if (this.#pace === "fast") this.#judgePause(tookMs);
    else if (isSmall) this.#measure(bytes, tookMs);
    else this.#measureAnew();
  }

  #judgePause(ms: number): void {
    if (ms >= fast.pauseMs) this.#pace = "slow";
    else if (ms >= fast.readMs) {
      this.#pace = "unknown";
      this.#measureAnew();
    }
  }

  #measure(bytes: number, tookMs: number): void {
    // The wait for the first one is none of the stream's.
    if (this.#bytes > 0) this.#tookMs += tookMs;
    this.#bytes += bytes;
    if (this.#pace !== "unknown" || this.#bytes < measuredBytes) return;
    this.#pace = this.#tookMs < fast.withinMs ? "fast" : "slow";
  }

  #measureAnew(): void {
    this.#bytes = 0;
    this.#tookMs = 0;
  }
}
