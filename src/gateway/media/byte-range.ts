// One byte range (RFC 9110, 14). Several ranges at once, or one that cannot be parsed, count as a request for the whole
// file.

export type ByteRange = { readonly from: number; readonly to: number | undefined } | { readonly last: number };

const pattern = /^bytes=(\d{0,15})-(\d{0,15})$/;

export function readRange(header: string | undefined): ByteRange | undefined {
  const [, first, second] = pattern.exec(header ?? "") ?? [];
  if (first === undefined || second === undefined || (first === "" && second === "")) return undefined;
  if (first === "") return { last: Number(second) };
  const from = Number(first);
  const to = second === "" ? undefined : Number(second);
  return to !== undefined && to < from ? undefined : { from, to };
}

export function writeRange(range: ByteRange): string {
  return "last" in range ? `bytes=-${range.last}` : `bytes=${range.from}-${range.to ?? ""}`;
}

/** The bytes that a file of this size has of it, both ends included; undefined where it has none. */
export function resolveRange(range: ByteRange, size: number): { from: number; to: number } | undefined {
  const from = "last" in range ? Math.max(0, size - range.last) : range.from;
  const to = "last" in range ? size - 1 : Math.min(range.to ?? size - 1, size - 1);
  return from > to ? undefined : { from, to };
}

/** What a 206 says that it carries; undefined where it does not say it, or not the size of the whole. */
export function readContentRange(header: string | null): { from: number; to: number; size: number } | undefined {
  const [, from, to, size] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? "") ?? [];
  if (from === undefined || to === undefined || size === undefined) return undefined;
  const read = { from: Number(from), to: Number(to), size: Number(size) };
  return read.from <= read.to && read.to < read.size ? read : undefined;
}
