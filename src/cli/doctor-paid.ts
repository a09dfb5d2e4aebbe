// The doctor's dearest question: whether a limit of 50 holds against 60 submits at once.
import { randomUUID } from "node:crypto";
import { type Asker, sayRefusal } from "./asker.ts";
import { inputOf, newSeed } from "./doctor-pictures.ts";
import { type Finding, fault, leftOut, ok } from "./findings.ts";

const limit = 50;
const submits = 60;

export async function checkLimit(asker: Asker, appSecret: string | undefined, model: string): Promise<Finding> {
  const what = `${submits} submits`;
  if (!appSecret)
    return leftOut(what, "the app's secret is not known here", "Set APP_SECRET: it makes a user with a limit.");
  // A user of this one time, whom no earlier run has used up.
  const rules = [{ unit: "requests", limit, per: "hour" }];
  const body = { user: `doctor-${randomUUID()}`, plan: "unlimited", rules };
  const minted = await asker.ask("/tokens", { method: "POST", key: appSecret, body });
  if (minted.status !== 200) return fault(what, sayRefusal(minted), "npx wrangler tail shows what went wrong.");
  const key = String(minted.json?.["token"]);
  const path = `/v2/${model}/run`;
  const answers = await Promise.all(
    Array.from({ length: submits }, () => asker.ask(path, { method: "POST", key, body: inputOf(newSeed()) })),
  );
  const taken = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 429);
  const jobs = taken.map(({ json }) => String(json?.["id"]));
  const cancel = (job: string) => asker.ask(`/v2/${model}/cancel/${job}`, { method: "POST", key });
  await Promise.all(jobs.map((job) => cancel(job).catch(() => undefined)));
  const seen = `${taken.length} were taken and ${refused.length} refused, with a limit of ${limit}`;
  if (taken.length === limit && refused.length === submits - limit) return ok(what, seen);
  const other = answers.find(({ status }) => status !== 200 && status !== 429);
  if (other) return fault(what, `${seen}; another: ${sayRefusal(other)}`, "npx wrangler tail shows what went wrong.");
  return fault(what, seen, "The limit does not hold: report this, with the version that is deployed.");
}
