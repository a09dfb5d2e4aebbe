// `npm run bench [-- --only relays,growth --runs 2 --readme --json --small]`: measures the built Worker in real processes.
import { parseArgs } from "node:util";
import { benches } from "./benches.ts";
import { type Jitter, probeJitter, worstOf } from "./gateway/jitter.ts";
import { curvesOf } from "./growth/by-size.ts";
import { writePlot } from "./growth/plot.ts";
import { occasionOf, putIntoDocuments, reportOf } from "./report.ts";
import { mergeRuns, type Table } from "./table.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(benches).join(",") },
    runs: { type: "string", default: "1" },
    small: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    readme: { type: "boolean", default: false },
  },
});
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
const found = chosen.map(({ name, title, runs, jitters }) => {
  const table = mergeRuns(runs);
  const plots = values.readme && name === "growth" ? curvesOf(table).map(writePlot) : [];
  return { name, title, jitter: worstOf(jitters), table, plots };
});
for (const one of found) {
  const report = reportOf(one, occasion);
  if (values.readme && !putIntoDocuments(one.name, report)) console.error(`No document has a place for ${one.name}.`);
  if (!values.json) console.log(`${report}\n`);
}
if (values.json) console.log(JSON.stringify({ ...occasion, benches: found }, null, 2));
