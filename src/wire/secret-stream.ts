// A secret looked for in bytes that come piece by piece: what may be the beginning of one waits for the next piece.
import { FOUND, type SecretSearch } from "./secret-search.ts";

const nothing = new Uint8Array();

export class SecretStream {
  /** The end of what came, where a secret may begin in it. */
  held: Uint8Array = nothing;
  readonly #search: SecretSearch;

  constructor(search: SecretSearch) {
    this.#search = search;
  }

  /** What may go on now; undefined where there is a secret. The piece itself is not kept. */
  take(piece: Uint8Array): Uint8Array | undefined {
    const bytes = this.held.length > 0 ? joined(this.held, piece) : piece;
    const clear = this.#search.look(bytes, 0, bytes.length);
    if (clear === FOUND) return undefined;
    this.held = clear < bytes.length ? bytes.slice(clear) : nothing;
    return bytes.subarray(0, clear);
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
