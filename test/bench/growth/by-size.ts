// What a call costs, by how much there is already: the same call at servers that hold more and more.
import type { Server } from "../../support/serve.ts";
import { median, paired, type Ratio } from "../statistics.ts";
import type { Table } from "../table.ts";

export interface Holder {
  readonly size: number;
  readonly server: Server;
}

/** A call, and what there is more and more of. */
export interface Grown {
  readonly what: string;
  readonly beside: string;
}

export interface Growth extends Grown {
  readonly points: readonly { readonly size: number; readonly cpuMs: number }[];
  /** Where there is most against where there is least, round by round. */
  readonly ratio: Ratio;
}

export interface GrowthEffort {
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly calls: number;
}

/** Others use the machine, but not the process: so its CPU is what counts. */
export async function measureBySize<H extends Holder>(
  grown: Grown,
  holders: readonly H[],
  { rounds, calls }: GrowthEffort,
  act: (holder: H, calls: number) => Promise<unknown>,
  undo: (holder: H) => Promise<unknown> = async () => {},
): Promise<Growth> {
  const found = holders.map((holder) => ({ holder, cpuMs: [] as number[] }));
  // The first round warms up.
  for (let round = -1; round < rounds; round++) {
    for (const { holder, cpuMs } of round % 2 === 0 ? found : [...found].reverse()) {
      const before = holder.server.cpuMs();
      await act(holder, calls);
      if (round >= 0) cpuMs.push((holder.server.cpuMs() - before) / calls);
      await undo(holder);
    }
  }
  const points = found.map(({ holder: { size }, cpuMs }) => ({ size, cpuMs: median(cpuMs) }));
  return { ...grown, points, ratio: paired(found.at(-1)?.cpuMs ?? [], found[0]?.cpuMs ?? []) };
}

/** Starts one for each size, and stops them all, whatever happens. */
export async function withHolders<H extends Holder, T>(
  sizes: readonly number[],
  start: (size: number) => Promise<H>,
  act: (holders: readonly H[]) => Promise<T>,
): Promise<T> {
  const holders: H[] = [];
  try {
    for (const size of sizes) holders.push(await start(size));
    return await act(holders);
  } finally {
    await Promise.all(holders.map(({ server }) => server.stop()));
  }
}

const ratioKey = "ratio";

/** A row for each kind of call, a column for each size. */
export function growthTable(growths: readonly Growth[]): Table {
  const sizes = [...new Set(growths.flatMap(({ points }) => points.map(({ size }) => size)))].sort((a, b) => a - b);
  const columns = [
    { key: "what", heading: "CPU a call, ms" },
    { key: "beside", heading: "beside so many" },
    ...sizes.map((size) => ({ key: String(size), heading: size.toLocaleString("en") })),
    { key: ratioKey, heading: "ratio of most to fewest" },
  ];
  const rows = growths.map(({ what, beside, points, ratio }) => ({
    ...Object.fromEntries(points.map(({ size, cpuMs }) => [String(size), cpuMs])),
    what,
    beside,
    [ratioKey]: ratio,
  }));
  return { columns, rows };
}

export type Curve = Pick<Growth, "what" | "beside" | "points">;

/** A table's rows as they are drawn. */
export function curvesOf({ rows }: Table): Curve[] {
  return rows.map((row) => ({
    what: String(row["what"]),
    beside: String(row["beside"]),
    points: Object.entries(row).flatMap(([key, cell]) =>
      typeof cell === "number" ? [{ size: Number(key), cpuMs: cell }] : [],
    ),
  }));
}
