// A film of one picture, which the camera slowly approaches.
import { type PictureRequest, paint } from "../painter/picture.ts";
import { fitted } from "../painter/retouch.ts";
import { encodeFilm } from "./h264.ts";
import { mp4Of } from "./mp4.ts";

/** Its sides are whole blocks. */
export interface FilmRequest extends PictureRequest {
  readonly seconds: number;
}

const framesPerSecond = 12;
/** A block moves as a whole: closer than this, and its neighbours no longer meet. */
const zoomASecond = 0.02;

export function shoot(request: FilmRequest): Uint8Array {
  const { given, width, height, seconds } = request;
  const first = given ? fitted(given, width, height) : paint(request);
  return mp4Of(encodeFilm(first, Math.round(seconds * framesPerSecond), seconds * zoomASecond), framesPerSecond);
}
