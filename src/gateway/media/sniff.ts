// Tells a file's type by its first bytes. Types that can carry script (SVG, HTML) are not served.

interface Signature {
  readonly type: string;
  readonly extension: string;
  readonly matches: (head: Uint8Array) => boolean;
}

/** What the first bytes say, however the file is called. */
export type FileKind = Pick<Signature, "type" | "extension">;

/** How many bytes are looked at. */
export const sniffBytes = 16;

const at = (head: Uint8Array, offset: number, text: string) =>
  [...text].every((character, index) => head[offset + index] === character.charCodeAt(0));
const bytes = (head: Uint8Array, ...expected: number[]) => expected.every((byte, index) => head[index] === byte);
const brand = (head: Uint8Array, ...names: string[]) => at(head, 4, "ftyp") && names.some((name) => at(head, 8, name));

const signatures: readonly Signature[] = [
  {
    type: "image/png",
    extension: "png",
    matches: (head) => bytes(head, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a),
  },
  { type: "image/jpeg", extension: "jpg", matches: (head) => bytes(head, 0xff, 0xd8, 0xff) },
  { type: "image/gif", extension: "gif", matches: (head) => at(head, 0, "GIF87a") || at(head, 0, "GIF89a") },
  { type: "image/webp", extension: "webp", matches: (head) => at(head, 0, "RIFF") && at(head, 8, "WEBP") },
  { type: "image/avif", extension: "avif", matches: (head) => brand(head, "avif", "avis") },
  { type: "audio/wav", extension: "wav", matches: (head) => at(head, 0, "RIFF") && at(head, 8, "WAVE") },
  { type: "audio/flac", extension: "flac", matches: (head) => at(head, 0, "fLaC") },
  { type: "audio/ogg", extension: "ogg", matches: (head) => at(head, 0, "OggS") },
  { type: "audio/mp4", extension: "m4a", matches: (head) => brand(head, "M4A ", "M4B ") },
  {
    type: "audio/mpeg",
    extension: "mp3",
    matches: (head) => at(head, 0, "ID3") || (head[0] === 0xff && ((head[1] ?? 0) & 0xe6) === 0xe2),
  },
  {
    type: "video/mp4",
    extension: "mp4",
    // HEIC pictures come in the same box.
    matches: (head) =>
      at(head, 4, "ftyp") && !brand(head, "heic", "heix", "heif", "heim", "heis", "hevc", "mif1", "msf1"),
  },
  { type: "video/webm", extension: "webm", matches: (head) => bytes(head, 0x1a, 0x45, 0xdf, 0xa3) },
];

export function sniff(head: Uint8Array): FileKind | undefined {
  return signatures.find(({ matches }) => matches(head));
}
