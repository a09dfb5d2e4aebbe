// What a run costs at most, and what the caller's plan leaves for it: said before it is run.
import type { Estimate, ListedModel, Usage } from "../../client/index.ts";
import { usd } from "../words.ts";

/** The limits of money that a run of the model meets, as far as their names tell: `usd-day`, `usd-day-video`. */
function moneyLimits({ limits }: Usage, { kind, id }: ListedModel) {
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

export function priceOf(estimates: readonly Estimate[]): string {
  const most = estimates.reduce((sum, { usd }) => sum + usd, 0);
  return most === 0 ? "Free" : `At most ${usd(most)}${estimates.length > 1 ? " for both" : ""}`;
}

/** Why no waiting makes room for one of them; empty where it does. */
export function noRoomFor(estimates: readonly Estimate[], usage: Usage, model: ListedModel): string {
  const tight = moneyLimits(usage, model).findLast(({ limit }) => estimates.some(({ usd }) => usd > limit));
  return tight ? `Your plan has no room for this: it allows ${usd(tight.limit)} ${tight.span}.` : "";
}
