// Money as it is counted everywhere: micro-USD, whole numbers.

export function microUsd(usd: number): number {
  return Math.round(usd * 1e6);
}
