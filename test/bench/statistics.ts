// What a bench says of many measured values.

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** How one thing stands to another, round by round, for each run. */
export interface Ratio {
  readonly runs: readonly (readonly number[])[];
}

/** One that has a goal. */
export interface Held extends Ratio {
  readonly atMost: number;
}

export function isReached({ runs, atMost }: Held): boolean {
  return median(runs.flat()) <= atMost;
}

export function paired(own: readonly number[], other: readonly number[]): Ratio {
  return { runs: [own.map((value, round) => value / (other[round] ?? Number.NaN))] };
}

/** How long an act takes, in milliseconds. */
export async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
