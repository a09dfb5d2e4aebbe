// `npm run bench [-- --only relays,rates,…] [--small] [--json]`: measures the built Worker in real processes.
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { probeJitter } from "./gateway/jitter.ts";
import { measureRelays } from "./gateway/relays.ts";
import { Stage } from "./gateway/stage.ts";
import { measureStart } from "./gateway/start.ts";
import { measureTransfers } from "./gateway/transfers.ts";
import { measureManagement } from "./management.ts";
import { measurePayloads } from "./payloads.ts";
import { measureGrowth, measureRates } from "./platform.ts";

interface Table {
  readonly title: string;
  readonly rows: readonly object[];
}

/** Small: that each runs, for machines that measure nothing. */
const benches: Record<string, (small: boolean) => Promise<Table>> = {
  jitter: async (small) => ({
    title: "How late the machine comes to a thread that wants to be called every millisecond",
    rows: [await probeJitter(small ? 200 : 2000)],
  }),
  relays: async (small) => {
    const effort = small ? { rounds: 1, loadMs: 200, aloneMs: 100 } : { rounds: 9, loadMs: 1000, aloneMs: 400 };
    const rows = await onStage(64, (stage) => measureRelays(stage, effort));
    return { title: "The gateway beside a bare passthrough, 32 at once", rows };
  },
  transfers: async (small) => ({
    title: "Large bodies, beside a bare passthrough",
    rows: await onStage(1, (stage) => measureTransfers(stage, small ? 1 : 7)),
  }),
  start: async (small) => ({
    title: "What a start costs, and how large the bundle is",
    rows: [await onStage(1, (stage) => measureStart(stage, small ? 1 : 9))],
  }),
  rates: async (small) => ({
    title: "One endpoint at the contract's own rates, runs and statuses at once",
    rows: await measureRates(small ? 0.1 : 1),
  }),
  growth: async (small) => ({
    title: "Run, take, done and status of one job, by the number of jobs that wait",
    rows: small ? await measureGrowth([100, 1000], 2, 20) : await measureGrowth([100, 1000, 10_000, 100_000], 7, 100),
  }),
  payloads: async (small) => ({
    title: "20 MB payloads: growth of the process above its start, for each in flight",
    rows: [...(await measurePayloads(1)), ...(small ? [] : await measurePayloads(4))].map(
      ({ growthBytes, ...others }) => ({ ...others, growthMB: growthBytes / 1e6 }),
    ),
  }),
  management: async (small) => {
    const few = { templates: 100, pods: 100 };
    const sizes = [few, small ? { templates: 1000, pods: 1000 } : { templates: 100_000, pods: 10_000 }];
    const title = "The management interface, by how much an account holds";
    return { title, rows: await measureManagement(sizes, small ? 1 : 9, small ? 5 : 100) };
  },
};

async function onStage<T>(payers: number, act: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await Stage.set(payers);
  try {
    return await act(stage);
  } finally {
    await stage.strike();
  }
}

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(benches).join(",") },
    small: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const tables: Table[] = [];
for (const name of values.only.split(",")) {
  const bench = benches[name];
  if (!bench) {
    console.error(`There is no bench ${name}; there are ${Object.keys(benches).join(", ")}.`);
    process.exit(2);
  }
  const table = await bench(values.small);
  tables.push(table);
  if (!values.json) console.log(`\n${markdown(table)}`);
}
if (values.json) console.log(JSON.stringify({ machine: machine(), date: new Date().toISOString(), tables }, null, 2));
else console.log(`\n${machine()}, ${new Date().toISOString().slice(0, 10)}`);

function markdown({ title, rows }: Table): string {
  const names = Object.keys(rows[0] ?? {});
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const cell = (value: unknown) => (typeof value === "number" ? String(Number(value.toPrecision(3))) : String(value));
  const body = rows.map((row) => line(Object.values(row).map(cell)));
  return [`**${title}**`, "", line(names), line(names.map(() => "---")), ...body].join("\n");
}

function machine(): string {
  const all = cpus();
  return `${all.length} × ${all[0]?.model.trim() ?? "unknown"}, Node ${process.versions.node}`;
}
