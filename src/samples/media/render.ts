// Makes a file of the asked format: the one function that sample models call.

import { type PictureRequest, paint } from "../painter/picture.ts";
import { type FilmRequest, shoot } from "./film.ts";
import { encodeFlac } from "./flac.ts";
import { encodeJpeg } from "./jpeg.ts";
import { encodeOgg } from "./ogg.ts";
import { encodePng } from "./png.ts";
import { type SpeechRequest, speak } from "./voice.ts";
import { encodeWav } from "./wav.ts";
import { bundledWebp } from "./webp.ts";

export interface Media {
  readonly bytes: Uint8Array;
  readonly contentType: string;
}

/** What each format is made from. The one bundled file needs nothing, since it is always the same. */
export type MediaRequest =
  | ({ readonly format: "png" } & PictureRequest)
  | ({ readonly format: "jpeg"; readonly quality?: number } & PictureRequest)
  | ({ readonly format: "wav" | "flac" | "ogg" } & SpeechRequest)
  | ({ readonly format: "mp4" } & FilmRequest)
  | { readonly format: "webp" };

type MediaFormat = MediaRequest["format"];

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

export function render(request: MediaRequest): Media {
  return { bytes: bytesOf(request), contentType: contentTypes[request.format] };
}

function bytesOf(request: MediaRequest): Uint8Array {
  switch (request.format) {
    case "png":
      return encodePng(paint(request));
    case "jpeg":
      return encodeJpeg(paint(request), request.quality ?? defaultQuality);
    case "wav":
      return encodeWav(speak(request));
    case "flac":
      return encodeFlac(speak(request));
    case "ogg":
      return encodeOgg(speak(request));
    case "mp4":
      return shoot(request);
    case "webp":
      return bundledWebp();
  }
}
