// The little of Node's zlib that is used here: all of Node's types would put its globals beside the runtime's own.
declare module "node:zlib" {
  export const constants: { readonly Z_HUFFMAN_ONLY: number; readonly Z_SYNC_FLUSH: number };
  export function deflateSync(bytes: Uint8Array, options: { readonly strategy: number }): Uint8Array;
  export function crc32(bytes: Uint8Array): number;
  export interface Inflate extends AsyncIterable<Uint8Array> {
    write(bytes: Uint8Array): void;
    end(): void;
  }
  export function createInflate(options: { readonly finishFlush: number }): Inflate;
}
