// A file of the visitor's, sent to the gateway; and in plain words, why it is not taken.
import { SluiceError } from "../../client/index.ts";
import type { MediaKind } from "../media.tsx";
import { sluice } from "../session.ts";
import { bytes, troubleOf } from "../words.ts";

/** A body of this size is taken by every model, where the deployment has no place for uploads. */
const maxInlineBytes = 7 * 1024 ** 2;

/** How the pictures begin that the gateway takes, a character for each byte. */
const pictures =
  /^(?:(?<png>\x89PNG)|(?<jpeg>\xff\xd8\xff)|(?<gif>GIF8)|RIFF....(?<webp>WEBP)|....ftyp(?<avif>avi[fs]))/s;

/** The file as what it is: a browser goes by its name, which may be another picture's. */
async function wellTyped(file: File): Promise<Blob> {
  const begins = String.fromCharCode(...new Uint8Array(await file.slice(0, 12).arrayBuffer()));
  const [name] = Object.entries(pictures.exec(begins)?.groups ?? {}).find(([, found]) => found) ?? [];
  return name ? file.slice(0, file.size, `image/${name}`) : file;
}

/** Uploaded at once, so that the price, the code and a reload know it. Without a place for uploads it goes with the job. */
export async function linkTo(file: File, say: (sentence: string) => void): Promise<string> {
  if (file.size === 0) throw new Error("The file is empty.");
  const typed = await wellTyped(file);
  try {
    say(`Sending ${file.name} …`);
    const onProgress = (sent: number, all: number) => say(`Sending ${file.name}: ${Math.round((100 * sent) / all)} %`);
    return (await sluice.upload(typed, { onProgress })).url;
  } catch (error) {
    const hasNoPlace = error instanceof SluiceError && (error.status === 501 || error.status === 404);
    if (!hasNoPlace) throw error;
    if (file.size > maxInlineBytes) throw new Error(tooLarge(maxInlineBytes));
    const reader = new FileReader();
    reader.readAsDataURL(typed);
    await new Promise((resolve) => reader.addEventListener("loadend", resolve));
    return `${reader.result}`;
  }
}

/** The docs call a mebibyte of these limits a megabyte. */
const tooLarge = (most: number) => `The file is too large. At most ${bytes((most / 1024 ** 2) * 1e6)} are taken.`;

/** What the gateway says of an upload is written for programs. */
export function faultOf(error: unknown, kind: MediaKind): string {
  const { message } = error as Error;
  const most = /^bytes: at most (\d+)/.exec(message)?.[1];
  if (most) return tooLarge(Number(most));
  if (message.startsWith("type: expected one of ")) {
    const taken = [...message.matchAll(new RegExp(`${kind}/(\\w+)`, "g"))].map(([, name]) => name);
    return `Files of this kind are not taken. These are: ${taken.join(", ")}.`;
  }
  if (message.startsWith("The file's first bytes")) return "What is in the file is not what its name says.";
  return troubleOf(error).sentence;
}
