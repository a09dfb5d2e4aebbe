// A file of a user's own: put whole, twice at once, broken off, as something else, or never; then read, and deleted.
import { choices } from "../chance.ts";
import type { Turn } from "../clients.ts";
import { pause } from "../pace.ts";

const sizes = { least: 1000, most: 200_000 };
const daySeconds = 24 * 60 * 60;

interface Announced {
  readonly id: string;
  readonly path: string;
  readonly put: string;
  readonly headers: Record<string, string>;
  readonly isLong: boolean;
}

export async function upload(turn: Turn): Promise<void> {
  const { n, seed, clients } = turn;
  const next = choices(seed, n, "upload");
  const file = fileOf(n, sizes.least + Math.floor(next() * (sizes.most - sizes.least)));
  const announced = await announce(turn, file.byteLength, next() < 0.5);
  if (!announced) return;
  const kind = next();
  if (kind < 0.1) return;
  if (kind < 0.3) {
    clients.count("upload of something else");
    const answer = await put(turn, announced, new Uint8Array(file.byteLength));
    if (answer === 201) clients.faults.push(`${announced.path} is no picture, and was taken`);
    return;
  }
  if (kind < 0.5) await leave(turn, announced, file, next);
  clients.count("upload");
  const atOnce = kind > 0.85 ? 2 : 1;
  const answers = await Promise.all(Array.from({ length: atOnce }, () => put(turn, announced, file)));
  const taken = answers.filter((status) => status === 201).length;
  if (taken > 1) clients.faults.push(`${announced.path} was taken ${taken} times`);
  if (taken > 0) await readAndRemove(turn, announced, file, next() < 0.5);
}

async function announce({ fate: { user }, clients }: Turn, bytes: number, isLong: boolean) {
  const body = JSON.stringify({ type: "image/jpeg", bytes, ttlSeconds: isLong ? 7 * daySeconds : daySeconds });
  const answer = await clients.ask(user, "POST", "/uploads", { body });
  if (answer?.status !== 200) return undefined;
  const { id, put: { url, headers } = { url: "", headers: {} } } = answer.body as {
    id: string;
    put?: { url: string; headers: Record<string, string> };
  };
  const { pathname: path, search } = new URL(url);
  return { id, path, put: path + search, headers, isLong };
}

async function put(
  { fate: { user }, clients }: Turn,
  { put: path, headers }: Announced,
  file: Uint8Array<ArrayBuffer>,
) {
  const answer = await clients.ask(user, "PUT", path, { headers, body: file, mayBreak: true });
  return answer?.status;
}

/** In the middle of the file. */
async function leave(turn: Turn, announced: Announced, file: Uint8Array<ArrayBuffer>, next: () => number) {
  const { clients, fate } = turn;
  clients.count("upload broken off");
  const leaving = new AbortController();
  const part = file.subarray(0, Math.floor(next() * file.byteLength));
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(part);
      await pause(20);
      leaving.abort();
    },
  });
  const how = { headers: announced.headers, body, duplex: "half", signal: leaving.signal } as const;
  await clients.ask(fate.user, "PUT", announced.put, how);
}

async function readAndRemove(turn: Turn, { id, path, isLong }: Announced, file: Uint8Array, isRemoved: boolean) {
  const { clients, fate } = turn;
  clients.count("upload read");
  const read = await clients.ask(fate.user, "GET", path, { mayBreak: true });
  if (read?.status === 200 && !Buffer.from(file).equals(read.bytes)) clients.faults.push(`${path} is another file`);
  if (read?.status === 404) clients.faults.push(`${path} was taken, and is not there`);
  if (!isRemoved) {
    if (isLong) clients.uploads.add(id);
    return;
  }
  clients.count("upload deleted");
  const removed = await clients.ask(fate.user, "DELETE", path);
  if (removed?.status !== 204) return;
  const after = await clients.ask(fate.user, "GET", path, { mayBreak: true });
  if (after?.status === 200) clients.faults.push(`${path} was deleted, and is there`);
}

function fileOf(n: number, bytes: number): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at++) file[at] = (at * 31 + n) & 0xff;
  file.set([0xff, 0xd8, 0xff, 0xe0]);
  return file;
}
