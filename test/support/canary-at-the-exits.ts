// The canary where nothing is answered: what is kept in KV, and what webhooks are told.
import { env } from "cloudflare:workers";
import { Outbox } from "../../src/gateway/quota/outbox.ts";
import { hear } from "./canary.ts";

const listened = new WeakSet<object>();
const decoder = new TextDecoder("latin1");

export function listenAtExits(): void {
  const kv = Object.getPrototypeOf(env.IMAGES) as KVNamespace;
  listenTo(kv, "put", (key, value) => hear(`KV, under ${String(key)},`, textOf(value)));
  listenTo(Outbox.prototype, "add", (_admission, _url, body) => hear("a webhook's body", textOf(body)));
}

function textOf(value: unknown): string {
  if (value instanceof ArrayBuffer) return decoder.decode(value);
  if (ArrayBuffer.isView(value))
    return decoder.decode(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  return String(value);
}

function listenTo<T extends object, Name extends keyof T & string>(
  target: T,
  name: Name,
  listen: (...words: unknown[]) => void,
): void {
  const method = target[name] as (...words: unknown[]) => unknown;
  if (listened.has(method)) return;
  const listening = function (this: unknown, ...words: unknown[]) {
    listen(...words);
    return Reflect.apply(method, this, words);
  };
  listened.add(listening);
  Object.defineProperty(target, name, { value: listening, configurable: true, writable: true });
}
