// The chunks that a job has streamed and no client has read yet. A chunk that was read is removed.
import { limits } from "../../contract/limits.ts";
import { isObject } from "../../json/is-object.ts";

/** How many bytes one answer carries; the next call gets the rest. */
const drainBytes = 4 * 1024 * 1024;
const encoder = new TextEncoder();

export class Chunks {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** How many bytes came. */
  add(job: number, output: unknown): number {
    const items = split(output);
    for (const item of items) {
      this.#sql.exec(
        "INSERT INTO chunks (job, part, bytes) SELECT ?, COALESCE(MAX(part), 0) + 1, ? FROM chunks WHERE job = ?",
        job,
        item,
        job,
      );
    }
    return items.reduce((size, { byteLength }) => size + byteLength, 0);
  }

  /** Each is a stream item as JSON; and how many bytes they are. */
  drain(job: number): { items: string[]; bytes: number } {
    const items: string[] = [];
    let size = 0;
    let last: number | undefined;
    const query = "SELECT part, bytes FROM chunks WHERE job = ? ORDER BY part";
    for (const row of this.#sql.exec<{ part: number; bytes: ArrayBuffer }>(query, job)) {
      if (items.length > 0 && size + row.bytes.byteLength > drainBytes) break;
      items.push(new TextDecoder().decode(row.bytes));
      size += row.bytes.byteLength;
      last = row.part;
    }
    if (last !== undefined) this.#sql.exec("DELETE FROM chunks WHERE job = ? AND part <= ?", job, last);
    return { items, bytes: size };
  }

  isEmpty(job: number): boolean {
    return this.#sql.exec("SELECT 1 FROM chunks WHERE job = ? LIMIT 1", job).toArray().length === 0;
  }

  /** How many bytes went. */
  remove(job: number): number {
    const query = "SELECT COALESCE(SUM(LENGTH(bytes)), 0) AS size FROM chunks WHERE job = ?";
    const { size } = this.#sql.exec<{ size: number }>(query, job).one();
    if (size > 0) this.#sql.exec("DELETE FROM chunks WHERE job = ?", job);
    return size;
  }
}

/** One item where it fits a chunk. A larger text, or a larger value's JSON, becomes several texts. */
export function split(output: unknown): Uint8Array[] {
  const whole = encodeItem(output);
  if (whole.byteLength <= limits.streamChunkBytes) return [whole];
  return pieces(typeof output === "string" ? output : JSON.stringify(output));
}

function encodeItem(output: unknown): Uint8Array {
  if (!isMetered(output)) return encoder.encode(JSON.stringify({ output }));
  const { metrics, ...measured } = output;
  return encoder.encode(JSON.stringify({ output: measured, metrics }));
}

/** A worker that measures itself puts `metrics` into what it yields; they stand beside the output. */
function isMetered(output: unknown): output is { metrics: object } {
  return isObject(output) && "metrics" in output && isObject(output.metrics);
}

/** Each as large as a chunk may be, whatever its characters take when they are written. */
function pieces(text: string): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let from = 0; from < text.length; ) {
    let length = Math.min(limits.streamChunkBytes, text.length - from);
    for (;;) {
      const piece = text.slice(from, from + length - halves(text, from + length));
      const item = encodeItem(piece);
      if (item.byteLength <= limits.streamChunkBytes) {
        found.push(item);
        from += piece.length;
        break;
      }
      length = Math.floor((length * (limits.streamChunkBytes - 16)) / item.byteLength);
    }
  }
  return found;
}

/** 1 where a cut would part the two halves of a character. */
function halves(text: string, at: number): number {
  const code = text.charCodeAt(at - 1);
  return at < text.length && code >= 0xd800 && code <= 0xdbff ? 1 : 0;
}
