// Holds the text of a large answer until it is complete. All answers use one buffer, one after the other.

export class AnswerRoom {
  #room: ArrayBufferLike | undefined;
  #users = 0;

  /** The buffer is kept while `act` runs, or another call of this. */
  async during<T>(act: () => Promise<T>): Promise<T> {
    this.#users += 1;
    try {
      return await act();
    } finally {
      this.#users -= 1;
      if (this.#users === 0) this.#room = undefined;
    }
  }

  /**
   * Reads a whole text into the buffer. It is valid until the next call, whose limit must be the same. Undefined if the
   * text breaks off or is too large; it is always read to its end.
   */
  async hold(text: ReadableStream<Uint8Array>, limitBytes: number): Promise<Uint8Array | undefined> {
    const reader = text.getReader({ mode: "byob" });
    let room = new Uint8Array(this.#room ?? new ArrayBuffer(limitBytes + 1));
    this.#room = undefined;
    let filled = 0;
    let isTooLarge = false;
    try {
      for (;;) {
        if (filled === room.byteLength) {
          isTooLarge = true;
          filled = 0;
        }
        const least = room.byteLength - filled;
        const { value }: { value?: Uint8Array | undefined } = await reader.readAtLeast(least, room.subarray(filled));
        if (!value) break;
        room = new Uint8Array(value.buffer);
        filled += value.byteLength;
        if (value.byteLength < least) break;
      }
    } catch {
      return undefined;
    }
    this.#room = room.buffer;
    return isTooLarge || filled === room.byteLength ? undefined : room.subarray(0, filled);
  }
}
