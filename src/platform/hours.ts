// Time as it is billed: a stretch of it, cut at the full hours.

export const hourMs = 3_600_000;

export interface HourShare {
  /** Hours since 1970. */
  readonly hour: number;
  readonly ms: number;
}

export function hourOf(moment: number): number {
  return Math.floor(moment / hourMs);
}

export function* hoursOf(from: number, to: number): Generator<HourShare> {
  for (let at = from; at < to; ) {
    const hour = hourOf(at);
    const end = Math.min(to, (hour + 1) * hourMs);
    yield { hour, ms: end - at };
    at = end;
  }
}
