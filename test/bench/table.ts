// What a bench found, as a table: several runs of it put together, and written as the README has it.
import { type Held, isReached, median, quantile, type Ratio } from "./statistics.ts";

/** Undefined where there is nothing to say, which is a dash. */
export type Cell = string | number | Ratio | Held | undefined;

export interface Column {
  readonly key: string;
  readonly heading: string;
}

export interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly Readonly<Record<string, Cell>>[];
}

export function tableOf<Row extends object>(
  headings: { readonly [K in keyof Row]-?: string },
  rows: readonly Row[],
): Table {
  const columns = Object.entries<string>(headings).map(([key, heading]) => ({ key, heading }));
  return { columns, rows: rows as Table["rows"] };
}

/** Numbers become the mean of the runs, a ratio keeps every round of each; what one of them could not say is not said. */
export function mergeRuns(runs: readonly Table[]): Table {
  const { columns, rows } = runs[0] ?? { columns: [], rows: [] };
  const cells = (at: number, key: string) => runs.map((run) => run.rows[at]?.[key]);
  const merged = rows.map((_, at) => Object.fromEntries(columns.map(({ key }) => [key, mergeCells(cells(at, key))])));
  return { columns, rows: merged };
}

function mergeCells(cells: readonly Cell[]): Cell {
  if (cells.includes(undefined)) return undefined;
  const numbers = cells.filter((cell) => typeof cell === "number");
  if (numbers.length > 0) return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  const ratios = cells.filter((cell) => typeof cell === "object");
  return ratios.length > 0 ? { ...ratios[0], runs: ratios.flatMap(({ runs }) => runs) } : cells[0];
}

export function markdown({ columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const lines = rows.map((row) => line(columns.map(({ key }) => cellText(row[key]))));
  return [line(columns.map(({ heading }) => heading)), `|${"---|".repeat(columns.length)}`, ...lines].join("\n");
}

const digits = 3;

function cellText(cell: Cell): string {
  if (cell === undefined || Number.isNaN(cell)) return "–";
  if (typeof cell === "string") return cell;
  if (typeof cell === "number") return Number(cell.toPrecision(digits)).toLocaleString("en");
  if (!("atMost" in cell)) return ratioText(cell);
  return `${ratioText(cell)}; goal ${cell.atMost.toFixed(1)}×, ${isReached(cell) ? "reached" : "not reached"}`;
}

/** The median of each run, and between which quartiles the rounds of all of them lie. */
export function ratioText({ runs }: Ratio): string {
  const short = (ratio: number) => (ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(1));
  const medians = runs.map((rounds) => `${short(median(rounds))}×`).join(", ");
  const [low, high] = [0.25, 0.75].map((share) => short(quantile(runs.flat(), share)));
  return `${medians} (${low} to ${high})`;
}
