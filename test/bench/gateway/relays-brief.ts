// What the README shows of the small exchanges: what users ask most, each beside the nearest thing to what Sluice does for it.
import type { Table } from "../table.ts";

const shown = {
  row: "What is asked",
  perSecond: "requests/s",
  cpuMs: "CPU a request, ms",
  beside: "held against",
  cpu: "ratio of the CPU",
};

const shownRows = [
  "status of a job that runs",
  "run, with quota",
  "runsync, answered from the cache",
  "a picture of 64 KB",
];

/** The bare passthrough comes first, and what does more comes after it. */
export function briefRelays({ rows }: Table, asked: readonly unknown[] = shownRows): Table {
  const nearest = new Map(rows.filter(({ row }) => asked.includes(row)).map((row) => [row["row"], row]));
  return { columns: Object.entries(shown).map(([key, heading]) => ({ key, heading })), rows: [...nearest.values()] };
}
