// Exceptions that no request answers for: of an alarm, or of work after the answer. The runtime tells of them only among
// its own lines, at each ring anew, by places in the bundle; here each is told once, by its place in the source.
import { SourceMap, type SourceMapPayload } from "node:module";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleName } from "./serve.ts";
import { root } from "./wrangler.ts";

const told = /^uncaught exception; source = [^;]*; stack = (.*)$/s;
const frame = /^ {4}at (?:(.*) \()?file:\/\/.*\/([^/:]+):(\d+):(\d+)\)?$/;

export interface Exception {
  readonly message: string;
  /** The innermost first: `alarm (src/gateway/images/generation.ts:203:12)`. */
  readonly places: readonly string[];
}

export class Exceptions {
  #sourceMap: SourceMap | undefined;
  #seen = new Set<string>();

  /** New code has new places. */
  follow(sourceMap: string): void {
    this.#sourceMap = new SourceMap(JSON.parse(sourceMap) as SourceMapPayload);
    this.#seen = new Set();
  }

  /** What the runtime's line says; "known" where it says what was told before, or what is not ours. */
  read(line: string): Exception | "known" | undefined {
    const [, stack] = told.exec(line) ?? [];
    if (stack === undefined) return undefined;
    const lines = stack.split("\n");
    const places = lines.flatMap((each) => this.#placeOf(each) ?? []);
    const [place] = places;
    // One without a place in our code is the runtime's own, of a client that left.
    if (place === undefined || this.#seen.has(place)) return "known";
    this.#seen.add(place);
    return { message: lines.filter((each) => !each.startsWith("    at ")).join("\n"), places };
  }

  #placeOf(line: string): string | undefined {
    const [, name, file, row, column] = frame.exec(line) ?? [];
    if (file !== bundleName) return undefined;
    const entry = this.#sourceMap?.findEntry(Number(row) - 1, Number(column) - 1);
    if (!entry || !("originalSource" in entry)) return undefined;
    const source = fileURLToPath(new URL(entry.originalSource, pathToFileURL(`${root}bundle/`)));
    const place = `${relative(root, source)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
    return name ? `${name} (${place})` : place;
  }
}
