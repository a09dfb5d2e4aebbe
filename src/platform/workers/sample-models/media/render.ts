// One door to all that the sample models make: a format, and the bytes of a file.
import { type BundledFormat, bundledFile } from "./files.ts";
import { encodeJpeg } from "./jpeg.ts";
import { type PictureRequest, paint } from "./picture.ts";
import { encodePng } from "./png.ts";
import { type SpeechRequest, speak } from "./wav.ts";

export interface Media {
  readonly bytes: Uint8Array;
  readonly contentType: string;
}

/** What is asked of each format; the bundled files are asked for nothing, since they are always the same. */
export type MediaRequest =
  | ({ readonly format: "png" } & PictureRequest)
  | ({ readonly format: "jpeg"; readonly quality?: number } & PictureRequest)
  | ({ readonly format: "wav" } & SpeechRequest)
  | { readonly format: BundledFormat };

export type MediaFormat = MediaRequest["format"];

export const contentTypes: Readonly<Record<MediaFormat, string>> = {
  png: "image/png",
  jpeg: "image/jpeg",
  webp: "image/webp",
  wav: "audio/wav",
  flac: "audio/flac",
  ogg: "audio/ogg",
  mp4: "video/mp4",
};

const defaultQuality = 88;

export async function render(request: MediaRequest): Promise<Media> {
  return { bytes: await bytesOf(request), contentType: contentTypes[request.format] };
}

async function bytesOf(request: MediaRequest): Promise<Uint8Array> {
  switch (request.format) {
    case "png":
      return encodePng(paint(request));
    case "jpeg":
      return encodeJpeg(paint(request), request.quality ?? defaultQuality);
    case "wav":
      return speak(request);
    default:
      return bundledFile(request.format);
  }
}
