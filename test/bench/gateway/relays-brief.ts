// What the README shows of the small exchanges: each question once, beside the nearest thing to what Sluice does for it.
import type { Table } from "../table.ts";

const shown = {
  row: "What is asked",
  perSecond: "requests/s",
  cpuMs: "CPU a request, ms",
  beside: "held against",
  cpu: "ratio of the CPU",
};

/** The bare passthrough comes first, and what does more comes after it. */
export function briefRelays({ rows }: Table): Table {
  const nearest = new Map(rows.map((row) => [row["row"], row]));
  return { columns: Object.entries(shown).map(([key, heading]) => ({ key, heading })), rows: [...nearest.values()] };
}
