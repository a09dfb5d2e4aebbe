// The little of Node's buffer that is used here: all of Node's types would put its globals beside the runtime's own.
declare module "node:buffer" {
  export const Buffer: { readonly prototype: { indexOf(this: Uint8Array, bytes: Uint8Array): number } };
  export function isUtf8(bytes: Uint8Array): boolean;
}
