// One scan of a JPEG: its blocks in their order, with restarts.
import { type Band, readBaseline, readDifference, readFirst, readRefinement } from "./jpeg-blocks.ts";
import { type Codes, ScanBits } from "./jpeg-codes.ts";
import type { Component, Frame } from "./jpeg-frame.ts";
import { makeSamples } from "./jpeg-samples.ts";
import { demand } from "./unreadable.ts";

/** What was defined so far: codes of means at 0 to 3, of other coefficients at 16 to 19. */
export interface Tables {
  readonly codes: (Codes | undefined)[];
  readonly steps: (Int32Array | undefined)[];
  restartEvery: number;
}

interface Member {
  readonly component: Component;
  readonly means: Codes | undefined;
  readonly others: Codes | undefined;
  readonly steps: Int32Array;
}

interface Scan {
  readonly frame: Frame;
  readonly members: readonly Member[];
  readonly bits: ScanBits;
  readonly band: Band;
}

/** Where the data goes on behind the scan. `head` is its header's body. */
export function readScan(data: Uint8Array, at: number, head: Uint8Array, frame: Frame, tables: Tables): number {
  const count = head[0] ?? 0;
  demand(count >= 1 && count <= 4 && head.length >= 4 + 2 * count, "no known scan");
  const members = Array.from({ length: count }, (_, n): Member => {
    const [id, chosen = 0] = head.subarray(1 + 2 * n, 3 + 2 * n);
    const component = frame.components.find((one) => one.id === id);
    demand(component !== undefined, "a scan of no component");
    const [means, others] = [tables.codes[chosen >> 4], tables.codes[16 + (chosen & 15)]];
    return { component, means, others, steps: tables.steps[component.steps] ?? unknownSteps };
  });
  const [from = 0, to = 0, told = 0] = head.subarray(1 + 2 * count);
  const band: Band = { from, to, bit: told & 15, isRefined: told >> 4 > 0, emptyBlocks: 0 };
  const scan: Scan = { frame, members, bits: new ScanBits(data, at), band: frame.isProgressive ? band : wholeBand };
  if (isWanted(scan)) readUnits(scan, tables.restartEvery);
  return scan.bits.at;
}

const unknownSteps = new Int32Array(64).fill(1);
const wholeBand: Band = { from: 0, to: 63, bit: 0, isRefined: false, emptyBlocks: 0 };

/** A baseline component is told once. Of a progressive picture that is too large the means are read alone. */
function isWanted({ frame, members, band }: Scan): boolean {
  if (!frame.isProgressive) return members.every(({ component }) => !component.isRead);
  demand(band.from <= band.to && band.to <= 63 && band.bit <= 13, "no known band");
  demand(band.from === 0 ? band.to === 0 : members.length === 1, "means and other coefficients in one scan");
  return band.from === 0 || frame.keptPerBlock === 64;
}

function readUnits(scan: Scan, restartEvery: number): void {
  const { frame, members, bits, band } = scan;
  for (const { component } of members) component.isRead = true;
  const [only] = members;
  const isAlone = members.length === 1 && only !== undefined;
  const across = isAlone ? only.component.ownColumns : frame.unitsAcross;
  const units = across * (isAlone ? only.component.ownRows : frame.unitsDown);
  const begin = () => {
    band.emptyBlocks = 0;
    for (const { component } of members) component.mean = 0;
  };
  begin();
  for (let unit = 0; unit < units; unit++) {
    if (restartEvery > 0 && unit > 0 && unit % restartEvery === 0) {
      if (!bits.restart()) return;
      begin();
    }
    const [column, row] = [unit % across, Math.floor(unit / across)];
    if (isAlone) readBlock(scan, only, column, row);
    else readUnit(scan, column, row);
    // The rest of the picture, or of what is up to the next restart, is missing.
    if (bits.isOver && restartEvery === 0) return;
  }
}

function readUnit(scan: Scan, column: number, row: number): void {
  for (const member of scan.members) {
    const { across, down } = member.component;
    for (let y = 0; y < down; y++) {
      for (let x = 0; x < across; x++) readBlock(scan, member, column * across + x, row * down + y);
    }
  }
}

const passing = new Int16Array(64);

function readBlock({ frame, bits, band }: Scan, member: Member, column: number, row: number): void {
  const { component, steps } = member;
  const at = row * component.columns + column;
  if (!frame.isProgressive) {
    for (let k = 0; k < frame.side * 8; k++) passing[k] = 0;
    component.mean += readDifference(bits, known(member.means));
    passing[0] = component.mean;
    readBaseline(bits, known(member.others), passing, frame.side);
    makeSamples(passing, 0, steps, component, frame.side, column, row);
    return;
  }
  const { kept } = component;
  if (band.from === 0) {
    const from = at * frame.keptPerBlock;
    if (band.isRefined) {
      kept[from] = (kept[from] as number) | (bits.bits(1) << band.bit);
      return;
    }
    component.mean += readDifference(bits, known(member.means));
    kept[from] = component.mean << band.bit;
    return;
  }
  const read = band.isRefined ? readRefinement : readFirst;
  read(bits, known(member.others), kept, at * 64, band);
}

function known(codes: Codes | undefined): Codes {
  demand(codes !== undefined, "codes that were not defined");
  return codes;
}
