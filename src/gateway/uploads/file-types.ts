// Which files may be uploaded: the types that may be announced, and what their first bytes must say.
import { sniff } from "../media/sniff.ts";

interface FileType {
  readonly extension: string;
  /** What the recognisers of `/images` call such a file: a container says more than one thing. */
  readonly sniffed: readonly string[];
}

const fileTypes: Readonly<Record<string, FileType>> = {
  "image/png": { extension: "png", sniffed: ["image/png"] },
  "image/jpeg": { extension: "jpg", sniffed: ["image/jpeg"] },
  "image/gif": { extension: "gif", sniffed: ["image/gif"] },
  "image/webp": { extension: "webp", sniffed: ["image/webp"] },
  "image/avif": { extension: "avif", sniffed: ["image/avif"] },
  "audio/wav": { extension: "wav", sniffed: ["audio/wav"] },
  "audio/flac": { extension: "flac", sniffed: ["audio/flac"] },
  "audio/ogg": { extension: "ogg", sniffed: ["audio/ogg"] },
  "audio/mp4": { extension: "m4a", sniffed: ["audio/mp4", "video/mp4"] },
  "audio/mpeg": { extension: "mp3", sniffed: ["audio/mpeg"] },
  "audio/webm": { extension: "weba", sniffed: ["video/webm"] },
  "video/mp4": { extension: "mp4", sniffed: ["video/mp4"] },
  "video/quicktime": { extension: "mov", sniffed: ["video/mp4"] },
  "video/webm": { extension: "webm", sniffed: ["video/webm"] },
};
export const uploadTypes = Object.keys(fileTypes);
export const uploadExtensions = Object.values(fileTypes).map(({ extension }) => extension);

/** What browsers and systems call the same. */
const otherNames: Readonly<Record<string, string>> = {
  "image/jpg": "image/jpeg",
  "image/pjpeg": "image/jpeg",
  "audio/wave": "audio/wav",
  "audio/x-wav": "audio/wav",
  "audio/vnd.wave": "audio/wav",
  "audio/x-flac": "audio/flac",
  "audio/mp3": "audio/mpeg",
  "audio/m4a": "audio/mp4",
  "audio/x-m4a": "audio/mp4",
};

/** As it is kept and served, without parameters such as `codecs`; undefined for what cannot be uploaded. */
export function readType(text: string): string | undefined {
  const [said = ""] = text.toLowerCase().split(";", 1);
  const type = otherNames[said.trim()] ?? said.trim();
  return Object.hasOwn(fileTypes, type) ? type : undefined;
}

export function extensionOf(type: string): string {
  return fileTypes[type]?.extension ?? "bin";
}

export function typeOf(extension: string): string | undefined {
  return uploadTypes.find((type) => fileTypes[type]?.extension === extension);
}

/** Whether a file that begins so may be of the type. */
export function isOfType(head: Uint8Array, type: string): boolean {
  const kind = sniff(head);
  return kind !== undefined && fileTypes[type]?.sniffed.includes(kind.type) === true;
}
