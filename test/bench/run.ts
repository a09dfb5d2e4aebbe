// `npm run bench [-- --only relays,growth --runs 2 --readme --json --small]`: measures the built Worker in real processes.
// With `--url URL [--token TOKEN --model MODEL --requests 50]` it measures a deployment instead, from here.
import { parseArgs } from "node:util";
import { benches } from "./benches.ts";
import { measureElsewhere } from "./elsewhere.ts";
import { type Jitter, probeJitter, worstOf } from "./gateway/jitter.ts";
import { curvesOf } from "./growth/by-size.ts";
import { writePlot } from "./growth/plot.ts";
import { occasionOf, putIntoDocuments, reportOf } from "./report.ts";
import { markdown, mergeRuns, type Table, tableOf } from "./table.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(benches).join(",") },
    runs: { type: "string", default: "1" },
    small: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    readme: { type: "boolean", default: false },
    url: { type: "string" },
    token: { type: "string" },
    model: { type: "string" },
    requests: { type: "string" },
  },
});
if (values.url !== undefined) process.exit(await benchElsewhere(values.url));
const { small } = values;
const chosen = values.only.split(",").map((name) => {
  const bench = benches[name];
  if (!bench) {
    console.error(`There is no bench ${name}; there are ${Object.keys(benches).join(", ")}.`);
    process.exit(2);
  }
  return { name, ...bench, runs: [] as Table[], jitters: [] as Jitter[] };
});

for (let run = 1; run <= Number(values.runs); run++) {
  for (const { name, runs, jitters, measure } of chosen) {
    const startedAt = performance.now();
    const jitter = await probeJitter(small ? 100 : 1000);
    jitters.push(jitter);
    runs.push(await measure({ small, jitter }));
    console.error(`run ${run}: ${name}, ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
}

const occasion = occasionOf(process.argv.slice(2));
const found = chosen.map(({ name, title, runs, jitters, brief }) => {
  const table = mergeRuns(runs);
  const plots = values.readme && name === "growth" ? curvesOf(table).map(writePlot) : [];
  return { name, title, jitter: worstOf(jitters), table, plots, brief: brief?.(table, plots) ?? {} };
});
for (const one of found) {
  if (values.readme && !putIntoDocuments(one, occasion)) console.error(`No document has a place for ${one.name}.`);
  if (!values.json) console.log(`${reportOf(one, occasion, "README.md")}\n`);
}
if (values.json) console.log(JSON.stringify({ ...occasion, benches: found }, null, 2));

async function benchElsewhere(url: string): Promise<number> {
  const { token, model, requests } = values;
  const headings = {
    what: "What",
    count: "calls",
    p50: "p50, ms",
    p95: "p95, ms",
    p99: "p99, ms",
    ownP50: "of it at the gateway, ms",
    waitedFor: "waited most for",
  };
  try {
    const rows = await measureElsewhere({
      url,
      token,
      model,
      requests: requests === undefined ? undefined : Number(requests),
    });
    console.log(values.json ? JSON.stringify(rows, null, 2) : markdown(tableOf(headings, rows)));
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
}
