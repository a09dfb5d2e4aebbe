// Exceptions that no request answers for: of an alarm, or of work after the answer. The runtime tells of them only among
// its own lines, at each ring anew, by places in the bundle; here each is told once, by its place in the source.
import { SourceMap, type SourceMapPayload } from "node:module";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleName } from "./serve.ts";
import { root } from "./wrangler.ts";

const thrown = /^uncaught exception; source = [^;]*; stack = (.*)$/s;
const thrownAtStart = /^service core:user:[^:]*: Uncaught (.*)$/s;
/** A client that left, or a connection that broke: whoever was told of it has answered for it. */
const ordinary = /disconnected prematurely|client disconnected|network connection lost/i;
const frame = /^ +at (?:.*[/(])?([^/:( ]+):(\d+):(\d+)\)?$/;

export interface Exception {
  readonly message: string;
  /** The innermost first: `src/gateway/images/job-media.ts:203:12`. */
  readonly places: readonly string[];
}

export class Exceptions {
  /** Read at the first exception: it is large, and most code throws none. */
  #sourceMap: () => SourceMap | undefined = () => undefined;
  #followed = "";
  #seen = new Set<string>();

  /** New code has new places. */
  follow(sourceMap: string): void {
    if (sourceMap === this.#followed) return;
    this.#followed = sourceMap;
    let read: SourceMap | undefined;
    this.#sourceMap = () => {
      read ??= new SourceMap(JSON.parse(sourceMap) as SourceMapPayload);
      return read;
    };
    this.#seen = new Set();
  }

  /** What the runtime's line says; "known" where that was told before, or is none of our code's. */
  read(line: string): Exception | "known" | undefined {
    const [, atStart] = thrownAtStart.exec(line) ?? [];
    if (atStart !== undefined) return this.#describe(atStart);
    const [, stack] = thrown.exec(line) ?? [];
    if (stack === undefined) return undefined;
    const exception = this.#describe(stack);
    return ordinary.test(stack) || !this.isNew(exception.places) ? "known" : exception;
  }

  /** Whether nothing was told yet of the innermost of these places. */
  isNew([place]: readonly string[]): boolean {
    if (place === undefined || this.#seen.has(place)) return false;
    this.#seen.add(place);
    return true;
  }

  /** Of an error that the Worker caught and told of in its log: its places in our source. */
  placesOf(stack: readonly string[]): readonly string[] {
    return stack.flatMap((line) => this.#placeOf(line) ?? []);
  }

  #describe(stack: string): Exception {
    const lines = stack.split("\n");
    const message = lines.filter((line) => !/^ +at /.test(line)).join("\n");
    return { message, places: lines.flatMap((line) => this.#placeOf(line) ?? []) };
  }

  #placeOf(line: string): string | undefined {
    const [, file, row, column] = frame.exec(line) ?? [];
    if (file !== bundleName) return undefined;
    const entry = this.#sourceMap()?.findEntry(Number(row) - 1, Number(column) - 1);
    if (!entry || !("originalSource" in entry)) return undefined;
    const source = fileURLToPath(new URL(entry.originalSource, pathToFileURL(`${root}bundle/`)));
    return `${relative(root, source)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  }
}
