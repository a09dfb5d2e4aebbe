// Payloads in rows of 1 MiB: a row of a Durable Object holds 2 MB at most.
import { concat } from "../../json/concat.ts";

const rowBytes = 1024 * 1024;
/** An upload whose job never came is removed after this. */
const uploadLifetimeMs = 15 * 60 * 1000;

/** What stands before the input of a request that is nothing else. */
const bareHead = '{"input":';
const blank = 0x20;

/** A slice of a stored payload. */
export interface PayloadRange {
  readonly key: number;
  readonly from: number;
  readonly to: number;
}

export class Payloads {
  readonly #sql: SqlStorage;
  /** How many bytes each upload has stored so far. */
  readonly #uploads = new Map<number, number>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const { key } of sql.exec<{ key: number }>("SELECT key FROM uploads").toArray()) {
      this.#uploads.set(key, this.size(key));
    }
  }

  /** What uploads take that belong to no job yet. */
  get uploadedBytes(): number {
    let bytes = 0;
    for (const size of this.#uploads.values()) bytes += size;
    return bytes;
  }

  /** Stores what fits in memory; the caller runs it inside its transaction. */
  put(key: number, bytes: Uint8Array): void {
    for (let part = 0; part * rowBytes < bytes.byteLength; part++) {
      this.#putRow(key, part, bytes.subarray(part * rowBytes, (part + 1) * rowBytes));
    }
  }

  #putRow(key: number, part: number, bytes: Uint8Array): void {
    this.#sql.exec("INSERT INTO payloads (key, part, bytes) VALUES (?, ?, ?)", key, part, bytes);
  }

  /**
   * Stores a stream row by row. Until `adopt` it is an upload, which is removed when its time is over. Its size; nothing
   * where it broke off, was removed while it still flowed, or has no room.
   */
  async upload(
    key: number,
    stream: ReadableStream<Uint8Array>,
    now: number,
    fits: (bytes: number) => boolean,
  ): Promise<number | undefined> {
    this.#sql.exec("INSERT INTO uploads (key, dueAt) VALUES (?, ?)", key, now + uploadLifetimeMs);
    const reader = stream.getReader({ mode: "byob" });
    let buffer: ArrayBufferLike = new ArrayBuffer(rowBytes);
    let size = 0;
    for (let part = 0; ; part++) {
      let value: Uint8Array | undefined;
      try {
        ({ value } = await reader.readAtLeast(rowBytes, new Uint8Array(buffer)));
      } catch {
        return undefined;
      }
      if (value === undefined || value.byteLength === 0) break;
      // The upload was removed while it still flowed: no job would ever use the rest.
      if (!this.#isUpload(key) || !fits(value.byteLength)) {
        await reader.cancel().catch(() => {});
        return undefined;
      }
      this.#putRow(key, part, value);
      size += value.byteLength;
      this.#uploads.set(key, size);
      buffer = value.buffer;
      if (value.byteLength < rowBytes) break;
    }
    return size;
  }

  #isUpload(key: number): boolean {
    return this.#sql.exec("SELECT 1 FROM uploads WHERE key = ?", key).toArray().length > 0;
  }

  /** False where the upload is gone: its time was over before the job came. */
  adopt(key: number): boolean {
    this.#uploads.delete(key);
    return this.#sql.exec("DELETE FROM uploads WHERE key = ?", key).rowsWritten > 0;
  }

  overdueUploads(now: number): number[] {
    const rows = this.#sql.exec<{ key: number }>("SELECT key FROM uploads WHERE dueAt <= ? LIMIT 100", now);
    return rows.toArray().map(({ key }) => key);
  }

  nextUploadDue(): number | undefined {
    return this.#sql.exec<{ at: number | null }>("SELECT MIN(dueAt) AS at FROM uploads").one().at ?? undefined;
  }

  size(key: number): number {
    const query = "SELECT COALESCE(SUM(LENGTH(bytes)), 0) AS size FROM payloads WHERE key = ?";
    return this.#sql.exec<{ size: number }>(query, key).one().size;
  }

  /** How many bytes went. */
  remove(key: number): number {
    const size = this.size(key);
    this.#uploads.delete(key);
    this.#sql.exec("DELETE FROM payloads WHERE key = ?", key);
    this.#sql.exec("DELETE FROM uploads WHERE key = ?", key);
    return size;
  }

  /** Blanks what stands around a slice of JSON; the slice keeps its place. */
  blankAround({ key, from, to }: PayloadRange): void {
    if (from <= bareHead.length && this.size(key) === to + 1) return;
    const query = "SELECT part, bytes FROM payloads WHERE key = ? AND (part <= ? OR part >= ?)";
    const ends = [Math.floor(from / rowBytes), Math.floor(to / rowBytes)];
    for (const { part, bytes } of this.#sql.exec<{ part: number; bytes: ArrayBuffer }>(query, key, ...ends).toArray()) {
      const [start, blanked] = [part * rowBytes, new Uint8Array(bytes)];
      blanked.fill(blank, 0, Math.max(0, from - start));
      blanked.fill(blank, Math.max(0, to - start));
      this.#sql.exec("UPDATE payloads SET bytes = ? WHERE key = ? AND part = ?", blanked, key, part);
    }
  }

  /** The bytes in pieces of a row at most, read as they are asked for. */
  *read({ key, from, to }: PayloadRange): Generator<Uint8Array> {
    for (let part = Math.floor(from / rowBytes); part * rowBytes < to; part++) {
      const query = "SELECT bytes FROM payloads WHERE key = ? AND part = ?";
      const row = this.#sql.exec<{ bytes: ArrayBuffer }>(query, key, part).toArray()[0];
      if (!row) throw new Error("the payload is gone");
      const start = Math.max(0, from - part * rowBytes);
      yield new Uint8Array(row.bytes).subarray(start, to - part * rowBytes);
    }
  }
}

/** Pieces as one body: as bytes where they are few, else as a stream that holds one piece at a time. */
export function bodyOf(pieces: Iterable<Uint8Array>, size: number): Uint8Array | ReadableStream<Uint8Array> {
  if (size <= rowBytes) return concat(pieces, size);
  const { readable, writable } = new IdentityTransformStream();
  void pour(pieces, writable);
  return readable;
}

async function pour(pieces: Iterable<Uint8Array>, to: WritableStream<Uint8Array>): Promise<void> {
  const writer = to.getWriter();
  try {
    for (const piece of pieces) {
      await writer.write(piece);
      // Freed at once: the collector would let a payload's worth of rows pile up first.
      (piece.buffer as ArrayBuffer).transfer(0);
    }
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {});
  }
}
