// Searches for secrets in bytes that come piece by piece. A possible beginning of one is held back until the next
// piece.
import { FOUND, type SecretSearch } from "./secret-search.ts";

const nothing = new Uint8Array();

export class SecretStream {
  /** The end of what came, where a secret may begin in it. */
  held: Uint8Array = nothing;
  readonly #search: SecretSearch;
  /** Where a piece stands behind what was held: one place for all of them. */
  #room: Uint8Array = nothing;

  constructor(search: SecretSearch) {
    this.#search = search;
  }

  /** What may go on now, valid until the next piece; undefined where there is a secret. The piece itself is not kept. */
  take(piece: Uint8Array): Uint8Array | undefined {
    const bytes = this.held.length > 0 ? this.#joined(piece) : piece;
    const clear = this.#search.look(bytes, 0, bytes.length);
    if (clear === FOUND) return undefined;
    this.held = clear < bytes.length ? bytes.slice(clear) : nothing;
    return bytes.subarray(0, clear);
  }

  #joined(piece: Uint8Array): Uint8Array {
    const length = this.held.length + piece.length;
    if (this.#room.length < length) this.#room = new Uint8Array(length);
    this.#room.set(this.held);
    this.#room.set(piece, this.held.length);
    return this.#room.subarray(0, length);
  }
}
