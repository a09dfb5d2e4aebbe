// What a served Worker says, to whoever started it: a line a request for people, or the lines as they are for tools.
import type { WorkerdStructuredLog } from "miniflare";
import { type Exception, Exceptions } from "./exceptions.ts";
import { readExchange, requestLine } from "./request-line.ts";

export interface LogStyle {
  /** JSON lines, as a deployment writes them. */
  readonly json: boolean;
  readonly colours: boolean;
}

export class ServerLog {
  readonly exceptions = new Exceptions();
  readonly #style: LogStyle;
  readonly #write: (text: string) => void;

  constructor(style: LogStyle, write: (text: string) => void) {
    this.#style = style;
    this.#write = write;
  }

  hear({ level, message, timestamp }: WorkerdStructuredLog): void {
    const exception = this.exceptions.read(message);
    if (exception) {
      if (exception !== "known") this.#write(this.#sayException(exception));
    } else if (!isOfTheRuntime(level, message)) {
      this.#write(this.#style.json ? message : this.#forPeople(message, new Date(timestamp)));
    }
  }

  /** What the server itself has to say. */
  say(word: { fault: string } | { rebuiltInMs: number }): void {
    if (this.#style.json) this.#write(JSON.stringify("fault" in word ? { level: "error", ...word } : word));
    else this.#write("fault" in word ? word.fault : `Rebuilt in ${word.rebuiltInMs} ms.`);
  }

  #sayException({ message, places }: Exception): string {
    if (this.#style.json) return JSON.stringify({ level: "error", exception: message, places });
    return [`Uncaught ${message}`, ...places.map((place) => `    at ${place}`)].join("\n");
  }

  #forPeople(message: string, at: Date): string {
    const line = parse(message);
    const exchange = readExchange(line);
    if (exchange) return requestLine(exchange, at, this.#style.colours);
    const {
      faults,
      error,
      message: said = "",
      stack,
    } = (line ?? {}) as Partial<Record<"faults" | "error" | "message" | "stack", unknown>>;
    if (Array.isArray(stack))
      return this.#sayException({ message: `${error}: ${said}`, places: this.exceptions.placesOf(stack) });
    if (!Array.isArray(faults)) return message;
    return faults.map(({ setting, problem }) => `The setting ${setting}: ${problem}`).join("\n");
  }
}

/**
 * The runtime was asked for everything, since only so it tells of exceptions. Its own lines have a level that no
 * `console` has, or name places of its C++.
 */
function isOfTheRuntime(level: string, message: string): boolean {
  if (level === "warning") return true;
  return (level === "info" || level === "error") && /\.(c\+\+|h):\d+: /.test(message);
}

function parse(message: string): unknown {
  if (!message.startsWith("{")) return undefined;
  try {
    return JSON.parse(message);
  } catch {
    return undefined;
  }
}
