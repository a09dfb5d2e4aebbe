// Node's zlib, as much of it as is used here: all of Node's types would put its globals beside the runtime's own.

interface Inflate extends AsyncIterable<Uint8Array> {
  write(bytes: Uint8Array): void;
  end(): void;
}

interface Zlib {
  readonly constants: { readonly Z_HUFFMAN_ONLY: number; readonly Z_SYNC_FLUSH: number };
  deflateSync(bytes: Uint8Array, options: { readonly strategy: number }): Uint8Array;
  crc32(bytes: Uint8Array): number;
  createInflate(options: { readonly finishFlush: number }): Inflate;
}

declare const process: { getBuiltinModule(name: "node:zlib"): Zlib };

/**
 * Loading it takes milliseconds: an isolate pays for them with its first PNG, not with its start. At once and not by `import()`,
 * whose promise belongs to the call that asked first: where that one was ended meanwhile, all others would wait for ever.
 */
export function loadZlib(): Zlib {
  return process.getBuiltinModule("node:zlib");
}
