// What a served Worker says, on the terminal: one line for each request, or the lines as they are for tools.
import type { WorkerdStructuredLog } from "miniflare";
import { type Exception, Exceptions } from "./exceptions.ts";
import { isForTools, readExchange, requestLine } from "./request-line.ts";

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
      const text = this.#style.json ? message : this.#forPeople(message, new Date(timestamp));
      if (text !== undefined) this.#write(text);
    }
  }

  /** What the server itself has to say. */
  say(word: { fault: string } | { rebuiltInMs: number; isSame: boolean }): void {
    if (this.#style.json) this.#write(JSON.stringify("fault" in word ? { level: "error", ...word } : word));
    else if ("fault" in word) this.#write(word.fault);
    else this.#write(`Rebuilt in ${word.rebuiltInMs} ms${word.isSame ? ": the Worker is the same as before" : ""}.`);
  }

  #sayException({ message, places }: Exception): string {
    if (this.#style.json) return JSON.stringify({ level: "error", exception: message, places });
    return [`Uncaught ${message}`, ...places.map((place) => `    at ${place}`)].join("\n");
  }

  #forPeople(message: string, at: Date): string | undefined {
    const line = parse(message);
    const exchange = readExchange(line);
    if (exchange) return isForTools(exchange) ? undefined : requestLine(exchange, at, this.#style.colours);
    if (!line) return message;
    if (Array.isArray(line["faults"])) return line["faults"].map(saySetting).join("\n");
    if (Array.isArray(line["stack"])) return this.#sayCaught(line, line["stack"]);
    return sayMembers(line);
  }

  /** Each failed request is told of. An alarm that fails rings again each second: it is told of once for each place. */
  #sayCaught({ stack, ...line }: Line, frames: readonly string[]): string | undefined {
    const places = this.exceptions.placesOf(frames);
    const { requestId, alarm, error, message = "" } = line;
    if (requestId !== undefined) return this.#sayException({ message: `${error}: ${message}`, places });
    if (places.length === 0) return sayMembers(line);
    return this.exceptions.isNew(places)
      ? this.#sayException({ message: `${error} in the alarm of ${alarm}`, places })
      : undefined;
  }
}

/**
 * The runtime was asked for everything, since only so it tells of exceptions. Its own lines have a level that no
 * `console` has, or name places of its C++ or of its program.
 */
function isOfTheRuntime(level: string, message: string): boolean {
  if (level === "warning" || /^stack:( \S+@[0-9a-f]+)+/.test(message)) return true;
  return (level === "info" || level === "error") && /\.(c\+\+|h):\d+: /.test(message);
}

type Line = Readonly<Record<string, unknown>>;

function saySetting({ setting, problem }: { setting: string; problem: string }): string {
  return `The setting ${setting}: ${problem}`;
}

/** `binding: BUDGET, problem: cannot be reached` */
function sayMembers(line: Line): string {
  const say = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(line)
    .map(([name, value]) => `${name}: ${say(value)}`)
    .join(", ");
}

function parse(message: string): Line | undefined {
  if (!message.startsWith("{")) return undefined;
  try {
    return JSON.parse(message);
  } catch {
    return undefined;
  }
}
