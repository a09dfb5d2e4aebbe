// A request's body whose links of ours the model service cannot follow: each file goes in as a data URL while the body streams.
import { Problem } from "../../errors.ts";
import type { Call } from "../call.ts";
import { imagesOf } from "../media/images.ts";
import { rejoin } from "../media/media-body.ts";
import { openMedia } from "../media/source.ts";
import { uploadFile } from "../quota/upload-file.ts";
import { bucketAway, findBucket } from "./bucket.ts";
import { type LinkedMedia, placeOf, refusedAt } from "./media-inputs.ts";
import type { OwnLinks } from "./own-links.ts";

export interface LinkedBody {
  readonly body: BodyInit;
  /** Settles when a body that streams was sent, or with what cut it off. */
  readonly sent?: Promise<void>;
}

export interface Linking {
  readonly links: OwnLinks;
  readonly media: readonly LinkedMedia[];
  readonly limitBytes: number;
  /** Asked before the last bytes are sent: false where they are not to go out any more. */
  readonly mayEnd: () => boolean;
}

interface File {
  readonly type: string;
  readonly size: number | undefined;
  readonly stream: ReadableStream<Uint8Array>;
}

/** The same text with each link as the model service can read it. */
export async function linkBody(call: Call, text: string, linking: Linking): Promise<LinkedBody> {
  const changed = linking.media.filter(({ mustChange }) => mustChange);
  if (changed.length === 0) return { body: text };
  if (linking.links.areReachable) return { body: withLinks(text, changed, ({ link }) => link.url) };
  const mark = `sluice-file-${crypto.randomUUID()}`;
  const texts = withLinks(text, changed, () => mark).split(mark);
  const places = inOrderOfText(text, changed);
  const files: File[] = [];
  try {
    for (const place of places) files.push(await openLinked(call, place));
    return streamed(texts, files, linking);
  } catch (error) {
    for (const { stream } of files) stream.cancel("not sent").catch(() => {});
    throw error;
  }
}

type Body = { readonly input: Record<string, unknown> };

function withLinks(text: string, media: readonly LinkedMedia[], write: (place: LinkedMedia) => string): string {
  const body = JSON.parse(text) as Body;
  for (const place of media) {
    const { member, at } = place;
    if (at === undefined) body.input[member] = write(place);
    else (body.input[member] as unknown[])[at] = write(place);
  }
  return JSON.stringify(body);
}

/** Members stand in the text as their sender wrote them. */
function inOrderOfText(text: string, media: readonly LinkedMedia[]): LinkedMedia[] {
  const members = Object.keys((JSON.parse(text) as Body).input);
  const orderOf = ({ member, at = 0 }: LinkedMedia) => members.indexOf(member) * 1000 + at;
  return [...media].sort((one, other) => orderOf(one) - orderOf(other));
}

async function openLinked(call: Call, place: LinkedMedia): Promise<File> {
  const file = place.link.upload ? await openUpload(call, place.link.upload.text) : await openImage(call, place);
  if (!file) throw refusedAt(place, "there is no such file any more");
  return { ...file, type: place.link.upload?.type ?? file.type };
}

async function openUpload({ env }: Call, key: string): Promise<File | undefined> {
  const object = await findBucket(env)
    ?.get(uploadFile(key))
    .catch(() => {
      throw bucketAway();
    });
  return object ? { type: "", size: object.size, stream: object.body } : undefined;
}

async function openImage(call: Call, { link: { image } }: LinkedMedia): Promise<File | undefined> {
  const { config, env } = call;
  const media = image && (await imagesOf(config, env).reuse.media(image, call.exchange.startedAt));
  if (!media) return undefined;
  const sources = { hosts: config.mediaHosts, send: (request: Request) => fetch(request), own: () => undefined };
  const opened = await openMedia(sources, media.url);
  const { stream, work } = rejoin(opened);
  call.waitUntil(work);
  return { type: opened.kind.type, size: opened.size, stream };
}

const encoder = new TextEncoder();
const prefixOf = ({ type }: File) => `data:${type};base64,`;
const base64Bytes = (bytes: number) => 4 * Math.ceil(bytes / 3);

function streamed(texts: readonly string[], files: readonly File[], linking: Linking): LinkedBody {
  const plain = encoder.encode(texts.join("") + files.map(prefixOf).join("")).byteLength;
  const known = files.reduce((sum, { size }) => sum + base64Bytes(size ?? 0), plain);
  if (known > linking.limitBytes) throw tooLarge(linking);
  const isKnown = files.every(({ size }) => size !== undefined);
  const { readable, writable } = isKnown ? new FixedLengthStream(known) : new IdentityTransformStream();
  const writer = writable.getWriter();
  writer.closed.catch(() => {});
  const sent = send(writer, texts, files, linking).catch(async (error: unknown) => {
    await writer.abort(error).catch(() => {});
    for (const { stream } of files) if (!stream.locked) stream.cancel(error).catch(() => {});
    throw error;
  });
  sent.catch(() => {});
  return { body: readable, sent };
}

function tooLarge({ media, limitBytes }: Linking): Problem {
  const places = media.map(placeOf).join(", ");
  const reason = "the model service cannot reach this gateway, and with the file in it the request is larger than";
  return new Problem("INVALID_REQUEST", `${places}: ${reason} ${limitBytes} bytes`);
}

async function send(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  texts: readonly string[],
  files: readonly File[],
  linking: Linking,
): Promise<void> {
  let total = 0;
  const write = async (bytes: Uint8Array) => {
    total += bytes.byteLength;
    if (total > linking.limitBytes) throw tooLarge(linking);
    await writer.write(bytes).catch(stoppedReading);
  };
  for (const [at, file] of files.entries()) {
    await write(encoder.encode((texts[at] ?? "") + prefixOf(file)));
    await writeBase64(file.stream, write);
  }
  if (!linking.mayEnd()) stoppedReading();
  await write(encoder.encode(texts.at(-1)));
  await writer.close().catch(stoppedReading);
}

function stoppedReading(): never {
  throw new Problem("UPSTREAM_UNREACHABLE", "The model service stopped reading.");
}

/** Three bytes are four letters: what is over waits for the next piece. */
async function writeBase64(
  stream: ReadableStream<Uint8Array>,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  let over = new Uint8Array();
  for await (const piece of stream) {
    const bytes = new Uint8Array(over.byteLength + piece.byteLength);
    bytes.set(over);
    bytes.set(piece, over.byteLength);
    const whole = bytes.byteLength - (bytes.byteLength % 3);
    if (whole > 0) await write(encoder.encode(bytes.subarray(0, whole).toBase64()));
    over = bytes.slice(whole);
  }
  if (over.byteLength > 0) await write(encoder.encode(over.toBase64()));
}
