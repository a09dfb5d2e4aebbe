// The time that quotas count by: windows that slide, and the calendar in UTC.

const secondMs = 1000;
export const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** A sliding month is 30 days, since the calendar's months differ in length. */
export const windowMs = {
  second: secondMs,
  minute: minuteMs,
  hour: hourMs,
  day: dayMs,
  month: 30 * dayMs,
} as const;
export type Window = keyof typeof windowMs;

export type Period = "day" | "month";

/** Money is kept by the day, for so many days before today: so long may jobs end or be corrected. */
export const keptDays = 9;

/** Days since the epoch. */
export function dayOf(atMs: number): number {
  return Math.floor(atMs / dayMs);
}

/** First and last day of the period that the moment lies in. */
export function daysOf(period: Period, atMs: number): { first: number; last: number } {
  return { first: dayOf(startOf(period, atMs)), last: dayOf(endOf(period, atMs)) - 1 };
}

export function startOf(period: Period, atMs: number): number {
  return period === "day" ? dayOf(atMs) * dayMs : monthOf(atMs).start;
}

/** The first moment after the period. */
export function endOf(period: Period, atMs: number): number {
  return period === "day" ? (dayOf(atMs) + 1) * dayMs : monthOf(atMs).end;
}

/** The last month that was asked for: it is nearly always this one. */
let known = { start: 0, end: 0 };

function monthOf(atMs: number): { readonly start: number; readonly end: number } {
  if (atMs >= known.start && atMs < known.end) return known;
  const date = new Date(atMs);
  const year = date.getUTCFullYear();
  const month = date.getUTCMonth();
  known = { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
  return known;
}
