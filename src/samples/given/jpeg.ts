// JPEG, baseline and progressive, read as small as it is needed: a photo of 12 megapixels never stands in memory whole.
// A reader of whole files would hold 50 MB for 2 megapixels; one that takes blocks by their means is not to be had.
import { zigzag } from "../media/jpeg-transform.ts";
import type { Picture } from "../painter/picture.ts";
import { nextMarker, readCodes } from "./jpeg-codes.ts";
import { type Component, type Frame, readFrame } from "./jpeg-frame.ts";
import { makeSamples } from "./jpeg-samples.ts";
import { readScan, type Tables } from "./jpeg-scan.ts";
import { readOrientation, turned } from "./orientation.ts";
import { demand, Unreadable } from "./unreadable.ts";

/** Progressive files have about ten. Each costs a look at every block, however short it is. */
const mostScans = 24;

interface Found {
  frame?: Frame;
  readonly tables: Tables;
  /** What Adobe's marker says of the colours. */
  adobe?: number;
  orientation: number;
  scans: number;
}

export function decodeJpeg(data: Uint8Array): Picture {
  const found: Found = { tables: { codes: [], steps: [], restartEvery: 0 }, orientation: 1, scans: 0 };
  try {
    readSegments(data, found);
  } catch (error) {
    // What came before the fault is shown.
    if (!(error instanceof Unreadable) || found.scans === 0) throw error;
  }
  const { frame, tables, adobe, orientation, scans } = found;
  demand(frame !== undefined && scans > 0, "no picture in it");
  if (frame.isProgressive) for (const component of frame.components) transform(component, frame, tables);
  return turned(colored(frame, adobe), orientation);
}

function readSegments(data: Uint8Array, found: Found): void {
  for (let at = nextMarker(data, 2); at + 4 <= data.length; at = nextMarker(data, at)) {
    const marker = data[at + 1] as number;
    if (marker === 0xd9) return;
    at += 2;
    if (marker >= 0xd0 && marker <= 0xd8) continue;
    const length = (data[at] as number) * 256 + (data[at + 1] as number);
    const body = data.subarray(at + 2, at + Math.max(2, length));
    at += Math.max(2, length);
    if (marker === 0xda) {
      const { frame, tables } = found;
      demand(frame !== undefined, "a scan of no frame");
      if (++found.scans > mostScans) return;
      at = readScan(data, at, body, frame, tables);
    } else readSegment(marker, body, found);
  }
}

function readSegment(marker: number, body: Uint8Array, found: Found): void {
  const { tables } = found;
  if (marker === 0xc4) readCodeTables(body, tables);
  else if (marker === 0xdb) readSteps(body, tables);
  else if (marker === 0xdd) tables.restartEvery = (body[0] ?? 0) * 256 + (body[1] ?? 0);
  else if (marker === 0xe1) found.orientation = readOrientation(body) ?? found.orientation;
  else if (marker === 0xee && body[0] === 0x41 && body.length >= 12) found.adobe = body[11] ?? 0;
  else if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc8 && marker !== 0xcc) {
    demand(marker <= 0xc2, "a coding that is not read here");
    demand(found.frame === undefined, "two frames");
    found.frame = readFrame(marker, body);
  }
}

function readCodeTables(body: Uint8Array, { codes }: Tables): void {
  for (let at = 0; at + 17 <= body.length; ) {
    const counts = body.subarray(at + 1, at + 17);
    const total = counts.reduce((sum, count) => sum + count, 0);
    demand(total <= 256 && at + 17 + total <= body.length, "codes without symbols");
    codes[(body[at] as number) & 31] = readCodes(counts, body.subarray(at + 17, at + 17 + total));
    at += 17 + total;
  }
}

function readSteps(body: Uint8Array, { steps }: Tables): void {
  for (let at = 0; at < body.length; ) {
    const said = body[at++] as number;
    const bytes = said >> 4 === 0 ? 1 : 2;
    const table = new Int32Array(64);
    for (let k = 0; k < 64; k++, at += bytes) {
      table[zigzag[k] as number] = bytes === 1 ? (body[at] ?? 1) : (body[at] ?? 0) * 256 + (body[at + 1] ?? 1);
    }
    steps[said & 3] = table;
  }
}

function transform(component: Component, { side, keptPerBlock }: Frame, { steps }: Tables): void {
  const { kept, columns, rows } = component;
  const table = steps[component.steps] ?? new Int32Array(64).fill(1);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      makeSamples(kept, (row * columns + column) * keptPerBlock, table, component, side, column, row);
    }
  }
}

function colored(frame: Frame, adobe: number | undefined): Picture {
  const { width, height, side, components } = frame;
  const picture = { width: Math.ceil((width * side) / 8), height: Math.ceil((height * side) / 8) };
  const rgb = new Uint8Array(picture.width * picture.height * 3);
  const rows = components.map(() => new Uint8Array(picture.width)) as [Uint8Array, ...Uint8Array[]];
  const [first, second, third, inks] = rows;
  const isRgb = adobe === 0 || (adobe === undefined && components[0]?.id === 0x52 && components[1]?.id === 0x47);
  for (let y = 0, out = 0; y < picture.height; y++) {
    for (const [n, component] of components.entries()) readRow(component, frame, y, rows[n] as Uint8Array);
    for (let x = 0; x < picture.width; x++, out += 3) {
      let [r, g, b] = [first[x] as number, first[x] as number, first[x] as number];
      if (second !== undefined && third !== undefined) {
        const [blue, red] = [(second[x] as number) - 128, (third[x] as number) - 128];
        r = isRgb ? r : r + 1.402 * red;
        g = isRgb ? blue + 128 : g - 0.344136 * blue - 0.714136 * red;
        b = isRgb ? red + 128 : b + 1.772 * blue;
      }
      // A fourth ink is black, and Adobe writes inks the wrong way round: the more, the lighter.
      const share = inks === undefined ? 1 : (inks[x] as number) / 255;
      rgb[out] = byte(r * share);
      rgb[out + 1] = byte(g * share);
      rgb[out + 2] = byte(b * share);
    }
  }
  return { ...picture, rgb };
}

function readRow({ plane, columns, across, down }: Component, frame: Frame, y: number, into: Uint8Array): void {
  const start = Math.floor((y * down) / frame.tallest) * columns * frame.side;
  const step = across / frame.widest;
  for (let x = 0; x < into.length; x++) into[x] = plane[start + Math.floor(x * step)] as number;
}

const byte = (value: number) => (value < 0 ? 0 : value > 255 ? 255 : value);
