// The pictures that the hostile upstream's answers lead to: mostly whole, some not to be had, some broken off.
import type { ServerResponse } from "node:http";
import { choices } from "./chance.ts";
import { pause } from "./pace.ts";

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const mostBytes = 200_000;
let looks = 0;

/** A file that begins as a picture does. */
export function pictureOf(seed: number, n: number): Buffer {
  const size = signature.length + Math.floor(choices(seed, n, "picture")() * mostBytes);
  return Buffer.concat([signature, Buffer.alloc(size - signature.length, n % 251)]);
}

export async function sendPicture(response: ServerResponse, seed: number, n: number, calm: boolean): Promise<void> {
  const bytes = pictureOf(seed, n);
  const draw = calm ? 1 : choices(seed, n, `media ${looks++}`)();
  if (draw < 0.05) return void response.writeHead(500).end();
  response.writeHead(200, { "Content-Type": "image/png", "Content-Length": bytes.length });
  if (draw >= 0.1) return void response.end(bytes);
  response.write(bytes.subarray(0, bytes.length / 2));
  await pause(10);
  response.destroy();
}
