// What the caller's plan leaves for a run of a model: said before it is run.
import type { Limit, ListedModel, Usage } from "../../client/index.ts";
import { usd } from "../words.ts";

type Met = Limit & { readonly span: string };

/** The limits of money that a run of the model meets, as far as their names tell: `usd-day`, `usd-day-video`. */
function moneyLimits({ limits }: Usage, { kind, id }: ListedModel): Met[] {
  return limits.flatMap((limit) => {
    const [, period, scope = ""] = /^(?:token-)?usd-([a-z]+)-?(.*)$/.exec(limit.name) ?? [];
    const isMet = period !== undefined && ["", kind, id].includes(scope);
    return isMet ? [{ ...limit, span: `a ${period}${scope && ` for ${scope}`}` }] : [];
  });
}

/** Of what is left, the least: in money where the plan counts money by the day, else in requests. */
export function leftToday(usage: Usage, model: ListedModel): string {
  const ofToday = moneyLimits(usage, model).filter(({ span }) => span.startsWith("a day"));
  const [money] = ofToday.toSorted((a, b) => a.remaining - b.remaining);
  const requests = usage.limits.find(({ name, unit }) => unit === "requests" && /day/.test(name));
  const left = money
    ? `${usd(money.remaining)} of ${usd(money.limit)} left ${money.span.replace("a day", "today")}`
    : requests && `${requests.remaining} of ${requests.limit} requests left today`;
  return `Plan ${usage.plan}: ${left ?? "no limit by the day"}.`;
}

/** Why no waiting makes room for it; empty where it does. */
export function noRoomFor(mostUsd: number, usage: Usage, model: ListedModel): string {
  const [least] = moneyLimits(usage, model).toSorted((a, b) => a.limit - b.limit);
  if (!least || mostUsd <= least.limit) return "";
  return `Your plan has no room for this: it allows ${usd(least.limit)} ${least.span}.`;
}
