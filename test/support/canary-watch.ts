// In every test file: what is logged is searched for the keys that may not come out, and a find fails the test.
import { afterAll, afterEach, expect } from "vitest";
import { describe, hear, startListening, takeFound } from "./canary.ts";

const listeners = new WeakSet<object>();
const hearing = new WeakMap<object, object>();

/** Called by each project's setup, which runs once a file. */
export function watchForKeys(): void {
  const expectNothing = () => expect(takeFound(), "a key came out").toEqual([]);
  afterEach(expectNothing);
  afterAll(expectNothing);
  startListening();
  if (!listeners.has(console)) Object.assign(globalThis, { console: heard(console) });
}

/** Around whatever a test puts in a method's place, too. */
function heard(quiet: Console): Console {
  const listener = new Proxy(quiet, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      return typeof method === "function" ? hearingOf(method, String(name)) : method;
    },
  });
  listeners.add(listener);
  return listener;
}

function hearingOf(method: object, name: string): object {
  const known = hearing.get(method);
  if (known) return known;
  const listener = new Proxy(method as (...words: unknown[]) => unknown, {
    apply(write, self, words: unknown[]) {
      hear(`console.${name}`, words.map(describe).join(" "));
      return Reflect.apply(write, self, words);
    },
  });
  hearing.set(method, listener);
  // What a spy puts back is the listener.
  hearing.set(listener, listener);
  return listener;
}
