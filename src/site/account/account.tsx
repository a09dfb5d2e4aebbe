// The page at `/account`: what is left, what was spent, the last jobs, and whom this tab speaks for.
import type { Limit, Spent, Usage, UsedJob } from "../../client/index.ts";
import { sluice, tokensUser } from "../session.ts";
import { openPage, TokenForm } from "../trouble.tsx";
import { bytes, fromNow, usd } from "../words.ts";

const dayMs = 24 * 60 * 60 * 1000;
const shownDays = 30;
const shownJobs = 20;

function Account({ limits, plan, jobs, spent = [] }: Usage) {
  return (
    <div class="cards">
      <section class="card">
        <h2>Limits</h2>
        <p class="hint">
          Plan {plan}. {tokensUser || "You are a visitor."}
        </p>
        <Bars bars={limits.map(barOf)} warnsAt={0.9} />
        <details>
          <summary>Use another token</summary>
          <TokenForm />
        </details>
      </section>
      <section class="card">
        <h2>Spent by day</h2>
        <p class="hint">{totalOf(spent)}</p>
        <Days spent={spent} />
      </section>
      <section class="card">
        <h2>Spent by model</h2>
        <Bars bars={byModel(spent)} />
      </section>
      <section class="card whole">
        <h2>Last jobs</h2>
        <Jobs jobs={jobs.slice(0, shownJobs)} />
      </section>
    </div>
  );
}

/** The part is 1 at most. */
type Bar = Readonly<{ label: string; part: number; says: string }>;

function Bars({ bars, warnsAt = 2 }: { readonly bars: readonly Bar[]; readonly warnsAt?: number }) {
  return (
    <ul class="bars">
      {bars.length === 0 && <li class="hint">Nothing yet.</li>}
      {bars.map(({ label, part, says }) => (
        <li class="bar">
          <span>{label}</span>
          <span class="hint">{says}</span>
          <progress value={part} class={part > warnsAt ? "bad" : ""} aria-label={`${label}, ${says}`} />
        </li>
      ))}
    </ul>
  );
}

/** One column for each of the last days. */
function Days({ spent }: { readonly spent: readonly Spent[] }) {
  const days = Array.from({ length: shownDays }, (_, at) => {
    const day = new Date(Date.now() - (shownDays - 1 - at) * dayMs).toISOString().slice(0, 10);
    return { day, sum: sumOf(spent.filter((row) => row.day === day)) };
  });
  const most = Math.max(...days.map(({ sum }) => sum));
  const told = days.filter(({ sum }) => sum > 0).map(({ day, sum }) => `${day}: ${usd(sum)}`);
  return (
    <figure>
      <div class="columns" role="img" aria-label={`Spent by day. ${told.join("; ")}`}>
        {days.map(({ day, sum }) => (
          <span title={`${day}: ${usd(sum)}`} style={{ height: `${(100 * sum) / (most || 1)}%` }} />
        ))}
      </div>
      <figcaption class="hint bar">
        <span>{days[0]?.day}</span>
        <span>{days.at(-1)?.day}</span>
      </figcaption>
    </figure>
  );
}

function Jobs({ jobs }: { readonly jobs: readonly UsedJob[] }) {
  const rows = jobs.map(({ model, status, costUsd, reservedUsd, admittedAt }) => {
    const cost = costUsd === null ? `${usd(reservedUsd)} reserved` : usd(costUsd);
    return [model, status.toLowerCase().replaceAll("_", " "), cost, fromNow(admittedAt)];
  });
  const cellsOf = (row: readonly string[], Cell: "th" | "td") => row.map((text) => <Cell>{text}</Cell>);
  return (
    <section class="scroll" tabindex={0} aria-label="Last jobs">
      <table>
        <tr>{cellsOf(["Model", "State", "Cost", "When"], "th")}</tr>
        {rows.map((row) => (
          <tr>{cellsOf(row, "td")}</tr>
        ))}
      </table>
    </section>
  );
}

const nouns = {
  requests: "Requests",
  jobs: "Jobs at the same time",
  usd: "Money",
  bytes: "Uploaded",
  stored: "Stored",
};

/** Nothing of nothing is left: the bar is full. */
const partOf = ({ used, limit }: Limit) => (limit > 0 ? used / limit : 1);
const barOf = (limit: Limit) => ({ label: nameOf(limit), part: partOf(limit), says: leftOf(limit) });

/** `usd-day-video` is money of a day for films. */
function nameOf({ name, unit }: Limit): string {
  const [period, ...models] = name.split("-").filter((part) => part !== unit);
  return `${nouns[unit]}${period ? ` a ${period}` : ""}${models.length > 0 ? ` for ${models.join(" ")}` : ""}`;
}

function leftOf({ unit, limit, used, reserved, resetsAt }: Limit): string {
  const show = { usd, bytes, stored: bytes, requests: String, jobs: String }[unit];
  const held = reserved > 0 ? `, ${show(reserved)} of it reserved` : "";
  return `${show(used)} of ${show(limit)}${held}${resetsAt ? `, anew ${fromNow(resetsAt)}` : ""}`;
}

const sumOf = (spent: readonly Spent[]) => spent.reduce((sum, row) => sum + row.usd, 0);

function totalOf(spent: readonly Spent[]): string {
  const assumed = spent.reduce((sum, { assumedUsd }) => sum + assumedUsd, 0);
  const jobs = spent.reduce((sum, row) => sum + row.jobs, 0);
  const total = `${usd(sumOf(spent))} for ${jobs} ${jobs === 1 ? "job" : "jobs"}.`;
  if (assumed === 0) return total;
  return `${total} ${usd(assumed)} of it is an estimate, since the model service has not said what those jobs cost.`;
}

/** The dearest first. */
function byModel(spent: readonly Spent[]): Bar[] {
  const models = [...new Set(spent.map(({ model = "" }) => model))];
  const sums = models.map((label) => ({ label, sum: sumOf(spent.filter(({ model }) => model === label)) }));
  sums.sort((a, b) => b.sum - a.sum);
  return sums.map(({ label, sum }) => ({ label, part: sum / (sums[0]?.sum || 1), says: usd(sum) }));
}

openPage(
  () => sluice.usage({ by: "day,model" }),
  (usage) => <Account {...usage} />,
);
