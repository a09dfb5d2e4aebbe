// The picture among a job's inputs: the first one that can be had and read.
import type { Model, ModelInput } from "../../models/model.ts";
import type { Picture } from "../painter/picture.ts";
import type { SampleContext } from "../sample.ts";
import { readPicture } from "./read-picture.ts";

/** In base64; a longer one is left alone, as is a longer file behind a URL. */
const mostLetters = 14 * 1024 * 1024;

/** Undefined where none was given, and where what was given is no picture that can be read here: a sample goes on without. */
export async function findGivenPicture(
  { media }: Pick<Model, "media">,
  input: ModelInput,
  { withMedia }: Pick<SampleContext, "withMedia">,
): Promise<Picture | undefined> {
  for (const [member, kind] of media) {
    const value: unknown = input[member];
    const text: unknown = Array.isArray(value) ? value[0] : value;
    if (kind !== "image" || typeof text !== "string") continue;
    const picture = await (/^https?:/i.test(text) ? withMedia(text, readPicture) : readWritten(text));
    if (picture) return picture;
  }
  return undefined;
}

/** A data URL, or base64 alone, in either alphabet. */
async function readWritten(text: string): Promise<Picture | undefined> {
  const letters = text.slice(/^data:[^,]{0,256};base64,/i.exec(text)?.[0].length ?? 0);
  if (letters.length > mostLetters) return undefined;
  const alphabet = /[-_]/.test(letters) ? "base64url" : "base64";
  try {
    return await readPicture(Uint8Array.fromBase64(letters, { alphabet }));
  } catch {
    return undefined;
  }
}
