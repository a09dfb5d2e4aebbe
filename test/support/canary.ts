// The canary: keys that no response, header, log line or error of the whole test run may hold, and who looks for them.
import { testSettings } from "./settings.ts";

/** What the gateway sends a real upstream, in the tests that have one. */
export const upstreamKey = "canary-key-of-the-upstream-0123456789";
/** The embedded platform's key is what the gateway sends where there is no other. */
const keys = new Set<string>([upstreamKey, testSettings.PLATFORM_API_KEY]);
/** Where a key came out, since it was last asked. */
const found: string[] = [];
let isListening = false;

/** A key that a test gives its own gateway. */
export function guardKey(key: string): void {
  if (key.length >= leastLength) keys.add(key);
}
/** What is shorter is a word, such as "none". */
const leastLength = 16;

export function startListening(): void {
  isListening = true;
}

/** A process whose log nobody listens to need not write it. */
export function canaryListens(): boolean {
  return isListening;
}

export function takeFound(): string[] {
  return found.splice(0);
}

export function hear(where: string, text: string): void {
  for (const said of text.includes("\\") || text.includes("%") ? [text, decoded(text)] : [text]) {
    for (const key of keys) for (const form of formsOf(key)) if (said.includes(form)) tell(where, said, form);
  }
}

function tell(where: string, text: string, form: string): void {
  found.push(`${where}: …${around(text, form)}…`);
}

const forms = new Map<string, readonly string[]>();

/** The key, and those characters that it has in base64 whatever stands in front of it. */
function formsOf(key: string): readonly string[] {
  const known = forms.get(key);
  if (known) return known;
  const encoded = ["", "-", "--"].map((before) => btoa(before + key + "-".repeat(3)).slice(4, key.length));
  const fresh = [key, ...encoded, ...encoded.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))];
  forms.set(key, fresh);
  return fresh;
}

/**
 * Written in its own way: what the product understands of spellings is what is tested. Runs of backslashes are made one
 * first: an expression that begins with such a run takes a minute over 150 KB of them.
 */
function decoded(text: string): string {
  return text
    .replace(/\\+/g, "\\")
    .replace(/\\u00([0-9a-f]{2})|%([0-9a-f]{2})/gi, (_, escaped, percent) =>
      String.fromCharCode(Number.parseInt(escaped ?? percent, 16)),
    )
    .replace(/\\([/+=_.-])/g, "$1");
}

const shownLength = 100;

function around(text: string, key: string): string {
  const at = text.indexOf(key);
  const shown = text.slice(Math.max(0, at - shownLength), at + key.length + shownLength);
  return shown.replaceAll(key, "<the key>");
}

/** The same response: its headers are looked at now, its body piece by piece as somebody reads it. */
export function overheard(where: string, response: Response): Response {
  hear(`a header of ${where}`, JSON.stringify([...response.headers]));
  hear(`the status of ${where}`, response.statusText);
  if (!response.body) return response;
  const { status, statusText, headers } = response;
  const heard = new Response(overhearing(where, response.body), { status, statusText, headers });
  return Object.defineProperty(heard, "url", { value: response.url });
}

/** Nothing is read before it is asked for, and whoever cancels cancels the source. */
function overhearing(where: string, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const longest = Math.max(...[...keys].map((key) => key.length));
  let before = "";
  return new ReadableStream(
    {
      type: "bytes",
      async pull(controller) {
        const { value, done } = await reader.read().catch((error: unknown) => {
          hear(`a broken body of ${where}`, describe(error));
          throw error;
        });
        if (value?.byteLength) {
          const text = before + latin1.decode(value);
          hear(`a body of ${where}`, text);
          before = text.slice(1 - longest);
          controller.enqueue(value.slice());
        }
        if (!done) return;
        controller.close();
        // A reader that brought its own buffer waits for it until then.
        controller.byobRequest?.respond(0);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
const latin1 = new TextDecoder("latin1");

export function describe(error: unknown): string {
  return error instanceof Error ? `${error.stack} ${String(error.cause)}` : String(error);
}
